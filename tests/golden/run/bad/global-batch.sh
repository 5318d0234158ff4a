# SPDX-License-Identifier: GPL-3.0-or-later
# These numbers are no batch of a job.
try() {
    "$MEMSIM" run "$@" 2>&1 | head -3
}
try tiny.json --global-batch 0
try tiny.json --global-batch x
try tiny.json --global-batch 3 -p ddp:dp=4
try tiny.json --global-batch 30 -p ddp:dp=4
try tiny.json --global-batch 32 --batch 4 -p ddp:dp=4
try tiny.json --global-batch 32 --lengths 8x16 --allocator torch
try tiny.json --global-batch 12 -p ddp:dp=4+microbatch:2
try ops.json --global-batch 12
"$MEMSIM" sweep tiny.json --grid global_batch=0 2>&1
"$MEMSIM" inspect tiny.json --global-batch 4 2>&1
exit 0
