# SPDX-License-Identifier: GPL-3.0-or-later
# Where PyTorch runs out of memory: in construction, in the first step, in a
# steady one, against a fraction; and where emptying the cache helps.
try() {
    echo "$@"
    "$MEMSIM" run gpt2 --batch 4 --sequence 256 --color never "$@" |
        keep 'pool, peak, at peak, verdict'
}
try --memory 1GiB --allocator torch
try --memory 2.5GiB --allocator torch
try --memory 2.5GiB --allocator torch --steps 1
try --memory 2.5GiB --allocator torch,expandable_segments=True
try --memory 3.6GiB --allocator torch
try --memory 8GiB --allocator torch,fraction=0.25
try --memory 8GiB --allocator torch,per_process_memory_fraction=0.25
"$MEMSIM" run gpt2 --batch 4 --sequence 256 --memory 2.5GiB \
    --allocator torch --check -q
echo "$?"
