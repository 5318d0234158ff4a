# SPDX-License-Identifier: GPL-3.0-or-later
# No sweep writes these rows: the message names the place.
try() {
    "$MEMSIM" plot - -o figure.svg 2>&1
    echo "$?"
}
sed 's/,status,/,state,/' swept.csv | try
sed 's/,host_peak_bytes/,host_peak_bytes,extra/' swept.csv | try
sed 's/,host_peak_bytes//' swept.csv | try
sed '2s/,none,ok/,none,fine/' swept.csv | try
sed '2s/,true,/,yes,/' swept.csv | try
sed '2s/,[0-9]*,0,0,0,/,-5,0,0,0,/' swept.csv | try
sed '2s/^1,/x,/' swept.csv | try
sed '3s/,0$/,"0/' swept.csv | try
sed '3s/,0$/,"0"0/' swept.csv | try
head -c 500 swept.csv | try
head -n 1 swept.csv | try
sed '2s/,none,ok,,[0-9]*,/,none,ok,,,/' swept.csv | try
sed '2s/"fits": true, //' swept.jsonl | try
sed '2s/"point": 2/"point": [2]/' swept.jsonl | try
sed '3s/"training.batch"/"training.sequence"/' swept.jsonl | try
head -c 400 swept.jsonl | try
grep '^point\|refused' swept.csv | try
{ "$MEMSIM" run tiny.json --csv -; } | try
{ "$MEMSIM" compare tiny.json -p none -p checkpoint:full --csv -; } | try
"$MEMSIM" run tiny.json --json |
    sed 's/"schema_version": 1/"schema_version": 9/' | try
{ cat swept.csv; grep -v '^1,' swept.csv | sed 's/,8,/,16,/'; } >twice.csv
"$MEMSIM" plot twice.csv -q -o figure.svg 2>&1
