# SPDX-License-Identifier: GPL-3.0-or-later
# What pools other than PyTorch's make of a step, and how they run out.
try() {
    echo "$@"
    "$MEMSIM" run gpt2 --batch 4 --sequence 256 "$@" |
        keep 'pool, peak, verdict'
}
try --allocator bfc
try --allocator bfc,allow_growth=true
try --allocator bfc,allow_growth=true,limit=3GiB
try --allocator bfc,per_process_gpu_memory_fraction=0.02
try --allocator buddy
try --allocator buddy,size=4GiB
try --allocator contiguous
try --allocator contiguous,size=3GiB
try --allocator contiguous --memory 2GiB
try --allocator arena
try --allocator arena,order=start
try --allocator arena,order=best --set training.step=first
try --allocator arena --memory 2.5GiB
for spec in bfc,allow_growth=true contiguous arena; do
    "$MEMSIM" run gpt2 --batch 4 --sequence 256 --json --allocator "$spec" \
        --memory 3GiB | grep -o -e '"pool": {.*}}\?, "peak"' \
        -e '"status": "[a-z_]*"' -e '"active_bytes[^{]*"reserved_bytes": [0-9]*'
done
"$MEMSIM" sweep gpt2 --grid training.batch=1,4 --sequence 256 \
    --allocator contiguous
