# SPDX-License-Identifier: GPL-3.0-or-later
# What a recording holds at its start: in its segments, or allocated anew.
set -- --allocator torch --allocator torch,expandable_segments:True
"$MEMSIM" alloc recorded.json "$@" | sed -n '/reserved/p; /^held/,$p'
"$MEMSIM" alloc recorded.json "$@" --anew | sed -n '/reserved/p; /^held/,$p'
"$MEMSIM" alloc snapshot.pickle "$@" --anew | sed -n '/reserved/p; /^held/,$p'
"$MEMSIM" alloc recorded.json --anew --json | grep held
"$MEMSIM" alloc recorded.json --anew | sed -n '/^held/,$p'
"$MEMSIM" alloc alloc.txt --anew
"$MEMSIM" alloc recorded.json --anew --allocator arena
