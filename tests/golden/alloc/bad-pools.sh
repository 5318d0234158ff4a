# SPDX-License-Identifier: GPL-3.0-or-later
# Pools other than PyTorch's refuse these options.
for spec in tcmalloc 'bfc,' bfc,growth=true bfc,allow_growth \
    bfc,allow_growth=yes bfc,garbage_collection=1 bfc,limit=0 bfc,limit=4G \
    bfc,per_process_gpu_memory_fraction=1.5 bfc,va=up bfc,fraction=0.5 \
    bfc,max_split_size_mb=64 buddy,size=3MiB buddy,min=100 \
    buddy,limit=1GiB buddy,va=down contiguous,size=x contiguous,min=512 \
    contiguous,size=2PiB; do
    "$MEMSIM" alloc alloc.txt -q --allocator "$spec" 2>&1
    echo "$?"
done
for spec in arena,order=up arena,order=exact arena,capacity=1GiB arena,order \
    bfc,allow_growth=1; do
    "$MEMSIM" run gpt2 -q --allocator "$spec" 2>&1
    echo "$?"
done
"$MEMSIM" run gpt2 -q --allocator arena --steps 3 2>&1
echo "$?"
"$MEMSIM" run gpt2 -q --allocator buddy --book device 2>&1
echo "$?"
