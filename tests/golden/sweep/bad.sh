# SPDX-License-Identifier: GPL-3.0-or-later
# Sweeps that cannot be made, files that cannot be written or resumed.
try() {
    "$MEMSIM" sweep "$@" 2>&1
    echo "status $?"
}
try no.json --grid batch=1
try bad-key.json --grid batch=1 -o part.csv
try tiny.json --grid batch=1 --shard 0/2
try tiny.json --grid batch=1 --shard 3/2
try tiny.json --grid batch=1 --shard 1
try tiny.json --grid batch=1 --jobs none
try tiny.json --grid batch=1 --resume
try tiny.json --grid batch=1 --check
cp tiny.json mine.json
try mine.json --grid batch=1 -o mine.json
cmp tiny.json mine.json
mkdir folder
try tiny.json --grid batch=1 -o folder
try tiny.json --grid batch=1 -o nowhere/part.csv
ln -s nowhere link
try tiny.json --grid batch=1 -o link
try tiny.json --grid batch=1 -o /dev/full
{ "$MEMSIM" sweep tiny.json --grid batch=1 >/dev/full; } 2>&1
echo "status $?"
try tiny.json --grid batch=1 -o /dev/null --resume
ls part.csv 2>/dev/null
try tiny.json --grid batch=1,2 -o part.csv -q
cp part.csv before.csv
try tiny.json --grid batch=1,2 -o part.csv
try tiny.json --grid batch=2,4 -o part.csv --resume
try tiny.json --grid batch=1 -o part.csv --resume
try tiny.json --grid batch=1,2 -o part.csv --resume --json
try tiny.json --grid batch=1,2 -o part.csv --resume --sequence 64
cmp part.csv before.csv
echo 'my notes' >notes
try tiny.json --grid batch=1,2 -o notes --resume
printf 'my notes' >notes
try tiny.json --grid batch=1,2 -o notes --resume
cat notes
