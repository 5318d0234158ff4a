# SPDX-License-Identifier: GPL-3.0-or-later
# A step cannot use these pools.
try() {
    "$MEMSIM" run gpt2 --batch 1 -q "$@" 2>&1
    echo "$?"
}
try --allocator touch
try --allocator torch,version=2
try --allocator torch,max_split_size_mb=1
try --allocator torch,version=1.13,expandable_segments=True
try --framework torch-1.13 --allocator torch,expandable_segments=True
try --steps 2
try --steps 2 --allocator exact
try --allocator torch --steps 0
try --allocator torch --steps 101
try --allocator torch --steps 2x
try --allocator torch --steps 2 --set training.step=first
try --allocator torch --book device
try --allocator torch --wall
try --allocator torch -p uvm
try --allocator torch --set training.device=cpu
"$MEMSIM" alloc alloc.txt --allocator exact 2>&1
echo "$?"
