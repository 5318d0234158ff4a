# SPDX-License-Identifier: GPL-3.0-or-later
# What no sweep writes, with its place.
try() {
    "$MEMSIM" plot - -o figure.svg 2>&1
    echo "$?"
}
sed 's/,status,/,state,/' rows.csv | try
sed 's/,host_peak_bytes/,host_peak_bytes,extra/' rows.csv | try
sed 's/,host_peak_bytes//' rows.csv | try
sed '2s/,none,ok/,none,fine/' rows.csv | try
sed '2s/,true,/,yes,/' rows.csv | try
sed '2s/,[0-9]*,0,0,0,/,-5,0,0,0,/' rows.csv | try
sed '2s/^1,/x,/' rows.csv | try
sed '3s/,0$/,"0/' rows.csv | try
sed '3s/,0$/,"0"0/' rows.csv | try
head -c 500 rows.csv | try
head -n 1 rows.csv | try
sed '2s/,none,ok,,[0-9]*,/,none,ok,,,/' rows.csv | try
sed '2s/"fits": true, //' rows.jsonl | try
sed '2s/"point": 2/"point": [2]/' rows.jsonl | try
sed '3s/"training.batch"/"training.sequence"/' rows.jsonl | try
head -c 400 rows.jsonl | try
grep '^point\|refused' rows.csv | try
{ "$MEMSIM" run tiny.json --csv -; } | try
{ "$MEMSIM" compare tiny.json -p none -p checkpoint:full --csv -; } | try
"$MEMSIM" run tiny.json --json | sed 's/"schema_version": 1/"schema_version": 9/' | try
{ cat rows.csv; grep -v '^1,' rows.csv | sed 's/,8,/,16,/'; } >twice.csv
"$MEMSIM" plot twice.csv -q -o figure.svg 2>&1
