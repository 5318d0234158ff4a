# SPDX-License-Identifier: GPL-3.0-or-later
# Comparisons that cannot be made.
try() {
    "$MEMSIM" compare "$@" 2>&1
    echo "status $?"
}
try tiny.json
try tiny.json -p none
try tiny.json -p none -p chekpoint:full
try tiny.json -p none -p microbatch:3
try tiny.json -p none -p microbatch:2+microbatch:2
try tiny.json -p none -p checkpoint:full --set training.btch=4
try tiny.json -p none -p checkpoint:full -p checkpoint:sqrt --explain
try tiny.json -p none -p checkpoint:full --at backward
try tiny.json -p none -p checkpoint:full --top 3
try tiny.json -p none -p checkpoint:full --explain --at backwrd
try tiny.json -p none -p checkpoint:full --explain --top x
try tiny.json -p none -p checkpoint:full --json --csv -
try tiny.json -p none -p checkpoint:full --csv tiny.json
try tiny.json -p none -p checkpoint:full --program tiny.prog
try -p none -p checkpoint:full
try no.json -p none -p checkpoint:full
