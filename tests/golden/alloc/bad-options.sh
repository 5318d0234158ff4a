# SPDX-License-Identifier: GPL-3.0-or-later
# Allocators and options that do not exist, or that PyTorch refuses.
try() {
    "$MEMSIM" alloc alloc.txt -q "$@" 2>&1
    echo "$?"
}
for spec in touch torch,version=2.9 torch,va=up torch,fraction=2 'torch,' \
    torch,expandable_segments torch,expandable_segments=yes \
    torch,expandabel_segments=True torch,max_split_size_mb=19 \
    torch,version=2.4,max_split_size_mb=20 \
    torch,max_split_size_mb=30,large_segment_size_mb=40 \
    torch,version=2.4,large_segment_size_mb=40 \
    torch,large_segment_size_mb=9 torch,garbage_collection_threshold=1 \
    torch,garbage_collection_threshold=x torch,roundup_power2_divisions=3 \
    'torch,roundup_power2_divisions=[256:1,3:2]' \
    'torch,roundup_power2_divisions=[256:1' \
    'torch,roundup_power2_divisions=[256:1;>:2]' \
    'torch,version=2.1,roundup_power2_divisions=[256:0]' \
    torch,version=1.13,expandable_segments=True \
    torch,version=1.13,roundup_power2_divisions=[1:2] \
    torch,roundup_bypass_threshold_mb=5 torch,backend=cudaMallocAsync \
    torch,per_process_memory_fraction=1.5 \
    torch,throw_on_cudamalloc_oom:True torch,expandable_segments_reserve:40G \
    torch,pinned_num_register_threads=3; do
    try --allocator "$spec"
done
try --allocator torch --allocator torch --csv -
try --csv - --json
try --csv alloc.txt
try --memory 0
try --memory 80G
try --batch 8
"$MEMSIM" alloc missing.txt
echo "$?"
"$MEMSIM" alloc . 2>&1
echo "$?"
