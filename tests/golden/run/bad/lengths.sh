# SPDX-License-Identifier: GPL-3.0-or-later
# These lists of lengths, and of pools, are impossible.
try() {
    "$MEMSIM" "$@" 2>&1
    echo "$?"
}
pool='--allocator torch'
for list in '' ',' '512,' 0 -1 5x12x3 x512 8x0 abc 1073741825 \
    99999999999999999999 '512;1024'; do
    # shellcheck disable=SC2086 # options
    try run tiny-llama.json -q $pool --lengths "$list"
done
list=1
for i in 2 3 4 5 6 7 8 9 10 11; do list=$list,1,1,1,1,1,1,1,1,1,1; done
try run tiny-llama.json -q --allocator torch --lengths "$list,$i"
try run tiny.json -q --allocator torch --lengths 16,100000
try run tiny-llama.json -q --allocator torch --lengths 16 --sequence 16
try run tiny-llama.json -q --allocator torch --lengths 8x16 --batch 8
try run tiny-llama.json -q --allocator exact --lengths 16,32
try run tiny-llama.json -q --allocator torch --lengths 16,32 \
    --set training.step=first
try run mlp.json -q --allocator torch --lengths 16,32
try fit tiny-llama.json --allocator torch --lengths 16,32 --max seq
try compare tiny-llama.json --allocators 'torch;touch'
try compare tiny-llama.json --allocators 'torch;'
try compare tiny-llama.json --allocators torch --allocator torch,version=2.4
try compare tiny-llama.json --allocators torch --grid 'allocator=torch'
try sweep tiny-llama.json --grid 'allocator=torch,version=2.4'
try sweep tiny-llama.json --grid 'allocator=exact;torch' --grid steps=2,0
try sweep tiny-llama.json --grid 'lengths=16,32;x' --allocator torch
