# SPDX-License-Identifier: GPL-3.0-or-later
# Impossible conditions, and one that leaves no point.
try() {
    "$MEMSIM" sweep tiny.json --grid batch=1..4 "$@" 2>&1
    echo "status $?"
}
try --filter batch
try --filter 'batch<'
try --filter 'bach<4'
try --filter 'batch<4x'
try --filter 'policy<4'
try --filter 'policy=chekpoint'
try --filter 'gpus<4'
try --filter 'batch>4'
