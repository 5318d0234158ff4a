# SPDX-License-Identifier: GPL-3.0-or-later
# Static plans: side by side, as JSON, as CSV, of every form of trace.
"$MEMSIM" alloc buffers.csv --allocator arena \
    --allocator arena,order=size-best --allocator arena,order=start \
    --allocator arena,order=xla-temporal --allocator arena,order=best \
    --allocator arena,order=exact \
    --allocator arena,order=exact,capacity=13288 \
    --allocator arena,order=objects
"$MEMSIM" alloc buffers.csv --allocator arena,order=objects-flow --json
"$MEMSIM" alloc buffers.csv --allocator arena,order=objects-flow --csv -
"$MEMSIM" alloc buffers.csv --allocator arena,order=exact,seconds=60 --json
"$MEMSIM" alloc buffers.csv --allocator arena,order=best --json
"$MEMSIM" alloc buffers.csv --allocator arena,order=exact --csv -
"$MEMSIM" alloc buffers.csv --allocator arena --csv - |
    "$MEMSIM" alloc - --allocator arena
"$MEMSIM" alloc alloc.txt --allocator arena --csv -
"$MEMSIM" alloc recorded.json --allocator arena
"$MEMSIM" alloc snapshot.pickle --allocator arena
