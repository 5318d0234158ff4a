# SPDX-License-Identifier: GPL-3.0-or-later
# Pools, steps and lengths as keys of a grid; rows read back.
"$MEMSIM" sweep tiny-llama.json --batch 4 -j2 \
    --grid 'allocator=exact;torch;torch,expandable_segments:True' \
    --grid 'lengths=32,128,64;128' --grid steps=2,6 -o rows.csv 2>/dev/null
cat rows.csv
"$MEMSIM" sweep tiny-llama.json --allocator torch --grid batch=1,2 \
    --filter 'allocator~torch' --filter 'steps<4' --steps 2 --json
"$MEMSIM" sweep tiny-llama.json --grid 'allocator=torch;exact' --steps 2 --json
"$MEMSIM" plot rows.csv --y reserved --x steps -o rows.svg 2>/dev/null
echo $?
