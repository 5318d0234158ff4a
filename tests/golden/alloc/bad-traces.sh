# SPDX-License-Identifier: GPL-3.0-or-later
# Several traces: what one of them alone can have, and one that is not there,
# is none, or is cut off: it is named, and nothing is printed of the others.
try() {
    "$MEMSIM" alloc "$@" 2>&1
    echo "exit $?"
}
head -c 900 snapshot.pickle >cut.pickle
printf '# nothing\n' >empty.txt
try alloc.txt missing.pickle recorded.json
try alloc.txt cut.pickle --json
try alloc.txt empty.txt
try alloc.txt buffers.csv
try - - <alloc.txt
try recorded.json alloc.txt --anew
try alloc.txt recorded.json --csv rows.csv
try alloc.txt recorded.json --plot
try alloc.txt recorded.json --allocator arena
try alloc.txt recorded.json --leaks
try alloc.txt recorded.json --allocator touch
try alloc.txt recorded.json -q
try alloc.txt recorded.json --batch 8
ls rows.csv 2>/dev/null || echo no rows
