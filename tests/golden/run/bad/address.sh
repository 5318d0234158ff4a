# SPDX-License-Identifier: GPL-3.0-or-later
# Address maps that do not exist, that are too many, or that were edited.
try() {
    { "$MEMSIM" "$@" >/dev/null; } 2>&1
    echo "$?"
}
try run tiny.json --plot=a.svg --figure address --set training.device=cpu
try run tiny.json --plot=a.svg --figure address --allocator exact
try compare tiny.json -p none -p checkpoint:full --plot=a.svg \
    --figure address --allocator exact
"$MEMSIM" run tiny.json --allocator exact --json >none.json
"$MEMSIM" run tiny.json --allocator torch --json >torch.json
try plot none.json --figure address
try compare torch.json none.json --plot=a.svg --figure address
for i in 1 2 3 4 5; do
    cp torch.json $i.json
done
try compare 1.json 2.json 3.json 4.json 5.json --plot=a.svg --figure address
try plot 1.json 2.json 3.json 4.json 5.json -o a.svg --figure address
edit() {
    sed "s/$1/$2/" torch.json >edited.json
    cmp -s torch.json edited.json && echo "the edit changes nothing"
    try plot edited.json --figure address |
        sed -n 's/edited.json:1:[0-9]*/edited.json:1/p'
}
edit '"height_bytes": [0-9]*' '"height_bytes": 5'
edit '"live_bytes": [0-9]*' '"live_bytes": 1e30'
edit '"segments": {"columns": \["at_bytes"' '"segments": {"columns": ["from_ns"'
edit '"rows": \[\[\([0-9]*\), \([0-9]*\), \([0-9]*\), [0-9]*\]' \
    '"rows": [[\1, \2, 7, 7]'
edit '"at_peak": {"parameters"' '"at_peak": {"parameter"'
try alloc alloc.txt --allocator arena --plot
try alloc alloc.txt --plot=- --json
try alloc alloc.txt --plot=a.gif
try alloc alloc.txt --figure address
try alloc alloc.txt --allocator torch --allocator torch --allocator torch \
    --allocator torch --allocator torch --plot
try alloc alloc.txt --plot=folder/a.svg
find . -name '*.svg' | sort
