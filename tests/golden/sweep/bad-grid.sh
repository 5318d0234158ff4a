# SPDX-License-Identifier: GPL-3.0-or-later
# Impossible grids are refused before anything runs.
try() {
    "$MEMSIM" sweep "$@" 2>&1
    echo "status $?"
}
try tiny.json
try tiny.json --grid batch
try tiny.json --grid bach=1
try tiny.json --grid batch=1,,2
try tiny.json --grid batch=0
try tiny.json --grid batch=8..1
try tiny.json --grid batch=1..8+0
try tiny.json --grid 'batch=1..8*1'
try tiny.json --grid batch=1..eight
try tiny.json --grid batch=1..99999999999999999999
try tiny.json --grid batch=1..100000000
try tiny.json --grid batch=1..10000000 --grid sequence=1..11
try tiny.json --grid batch=4,1..8
try tiny.json --grid batch=1 --grid training.batch=2
try tiny.json --grid memory=80G
try tiny.json --grid 'policy=none;chekpoint:sqrt'
try tiny.json --grid policy=zero:3,dp=8
try tiny.json --grid 'policy=none;checkpoint:sqrt' -p checkpoint:full
try tiny.json --grid precision=fp99
try tiny.json --grid device=h10
try tiny.json --grid model.hiden=1
