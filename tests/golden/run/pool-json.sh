# SPDX-License-Identifier: GPL-3.0-or-later
# What a pool adds to the JSON of a run, and that there is none without it.
try() { # lines of it, options
    lines=$1
    shift
    "$MEMSIM" run gpt2 --batch 4 --sequence 256 --json "$@" |
        grep -o -e '"status": "[a-z_]*"' -e '"allocator": "[^"]*"' \
            -e '"steps": [0-9]*' -e '"out_of_memory": {[^}]*}' \
            -e '"pool": {.*}}\?, "peak"' -e '"peak": {[^{]*' |
        sed 's/, "peak"$//' | head -n "$lines"
}
try 5 --allocator torch,version=2.4
try 6 --allocator torch --steps 2 --memory 2GiB
try 2
