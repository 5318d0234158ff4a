# SPDX-License-Identifier: GPL-3.0-or-later
# Files that cannot be compared, and options without effect on files.
try() {
    "$MEMSIM" compare "$@" 2>&1 | sed 's/json:1:[0-9]*:/json:1:/' | cut -c1-200
}
"$MEMSIM" run tiny.json --json >a.json
sed 's/"schema_version": 1/"schema_version": 2/' a.json >version.json
head -c 2000 a.json >broken.json
sed 's/"step_ns": [0-9]/"step_ns": 9/g' a.json >edited.json
"$MEMSIM" explain tiny.json --json >explain.json
"$MEMSIM" sweep tiny.json --grid batch=1,2 -q -o sweep.csv
"$MEMSIM" run tiny.json -q --csv line.csv 2>/dev/null
"$MEMSIM" compare tiny.json -p microbatch:2 -p none --json |
    sed 's/, {"schema_version".*\], "differences/], "differences/' >fewer.json
"$MEMSIM" compare tiny.json -p microbatch:2 -p none --json |
    sed 's/\[\({[^}]*}\), {.*\], "diff/[\1, \1], "diff/' >refused.json
echo '{"hello": 1}' >foreign.json
: >empty.json
for file in version broken edited explain fewer foreign empty no; do
    try a.json $file.json
done
try refused.json
try a.json sweep.csv
try line.csv a.json
try a.json
try a.json a.json --batch 8
try a.json a.json -p none
try a.json a.json --grid batch=1,2
try a.json a.json --memory 1GiB
try a.json tiny.json --explain
try a.json a.json --csv a.json
try a.json a.json --plot a.json.svg --csv a.json.svg
try a.json a.json --figure bars
try a.json a.json --plot a.svg --figure gantt
cmp -s a.json version.json || echo untouched
