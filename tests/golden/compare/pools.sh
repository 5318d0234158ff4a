# SPDX-License-Identifier: GPL-3.0-or-later
# Would expandable segments or max_split_size help this model?
try() {
    echo "$@"
    "$MEMSIM" compare tiny-llama.json --batch 64 --sequence 128 "$@" |
        sed -e '/^model/,/^1: /{/^1: /!d;}' \
            -e '/^against.*highest/,/^$/d'
}
try --allocators 'torch;torch,expandable_segments:True' \
    --allocators torch,max_split_size_mb:64
try --allocator exact --allocator torch --allocator torch,version=2.4 --steps 2
try --allocators 'torch;torch,expandable_segments:True' \
    -p none -p checkpoint:full --memory 700MiB
try --grid 'allocator=torch;torch,roundup_power2_divisions:4' --grid batch=2,4
"$MEMSIM" compare tiny-llama.json --allocator torch \
    --allocator torch,expandable_segments:True --batch 4 \
    --lengths 32,128,64 --json >a.json
grep -o '"pools": .*"explain"' a.json
"$MEMSIM" compare a.json | sed '/^model/,/^1: /{/^1: /!d;}'
"$MEMSIM" run tiny-llama.json --allocator torch --json >b.json
"$MEMSIM" run tiny-llama.json --allocator exact --json >c.json
"$MEMSIM" compare b.json c.json | sed '/^model/,/^1: /{/^1: /!d;}'
"$MEMSIM" compare b.json c.json --csv - |
    awk -F, '{ print $1 "," $2 "," $(NF - 8) "," $(NF - 7) "," $NF }'
