# SPDX-License-Identifier: GPL-3.0-or-later
# These grids make no comparison.
try() {
    "$MEMSIM" compare "$@" 2>&1
    echo "status $?"
}
try tiny.json --grid batch=1
try tiny.json --grid batch=1..41
try tiny.json --grid batch=1..100000000
try tiny.json --grid batch=1..64 --filter 'batch<1'
try tiny.json -p none -p checkpoint:full --grid batch=1..21
try tiny.json --grid btch=1,2
try tiny.json --grid batch=1,x
try tiny.json --grid batch
try tiny.json --grid batch=1,2 --filter 'batch'
try tiny.json --grid batch=1,2 -p microbatch:3
try tiny.json --grid 'policy=swap:auto,budget=1MiB;swap:belady,budget=2MiB'
try tiny.json no.json
try tiny.json mlp.json --grid sequence=16,32
try tiny.json --grid batch=1,2 --explain -p microbatch:2
