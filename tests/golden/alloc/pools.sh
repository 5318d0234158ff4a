# SPDX-License-Identifier: GPL-3.0-or-later
# One trace through pools of every kind: side by side, as rows, as JSON.
"$MEMSIM" alloc alloc.txt --allocator torch --allocator bfc \
    --allocator bfc,allow_growth=true --allocator buddy \
    --allocator contiguous --allocator contiguous,size=110MiB
"$MEMSIM" alloc alloc.txt --memory 1GiB --allocator bfc,limit=200MiB \
    --allocator bfc,per_process_gpu_memory_fraction=0.5 \
    --allocator buddy,size=256MiB,min=2MiB
for spec in bfc,allow_growth=true,va=down buddy contiguous; do
    echo "$spec"
    "$MEMSIM" alloc alloc.txt --allocator "$spec" --csv -
done
"$MEMSIM" alloc alloc.txt --allocator bfc --allocator buddy \
    --allocator contiguous --json
"$MEMSIM" alloc recorded.json --allocator torch \
    --allocator bfc,allow_growth=true --allocator buddy --allocator contiguous
# Of PyTorch's, what a heap has no notion of: nothing happens.
printf '# conf max_split_size_mb:64\n# version 2.4\na 0 1048576\nf 0\ne
x expandable_segments:True\nm 0.5\na 1 1048576\ns\nb 4096\nP\n' |
    "$MEMSIM" alloc - --memory 64MiB --allocator contiguous --csv -
