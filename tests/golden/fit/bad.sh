# SPDX-License-Identifier: GPL-3.0-or-later
# Searches that cannot be made.
try() {
    "$MEMSIM" fit "$@" 2>&1
    echo "status $?"
}
try
try no.json
try tiny.json tiny.json
try tiny.json --memory 0
try tiny.json --memory 100MiB
try tiny.json --memory 80G
try tiny.json --max layers
try tiny.json --max batch --batch 4
try tiny.json --max batch --set training.batch=4
try tiny.json --max seq --sequence 4
try mlp.json --max seq
try ops.json --max batch
try tiny.json --gpus 8 -p none --max batch
try tiny.json --max batch -p microbatch:4+swap:te=9
try tiny.json -p chekpoint:full
try tiny.json -p checkpoint:full -p checkpoint:sqrt,full
try tiny.json -p zero:3
try tiny.json --gpus 4 -p zero:1+fsdp
try tiny.json -p swap:te=9
try tiny.json --batch 4 -p microbatch:3
try tiny.json --jobs 0
try tiny.json --jobs many
try tiny.json --json --csv -
try tiny.json --csv tiny.json
try tiny.json --plot tiny.txt
try tiny.json --keep-script
try tiny.json --wall
try tiny.json --check
try tiny.json --goal speed
try tiny.json --goal memory --max batch
try tiny.json --vary precision --precision bf16
try tiny.json --vary kernels
try tiny.json --max batch --global-batch 8
try tiny.json --gpus 4 --global-batch 6 -p zero:1
try tiny.json --gpus 6 --global-batch 5
try tiny.json --gpus 4 --global-batch 8 --batch 4
try tiny.json --gpus 1,x
try tiny.json --gpus 2,,4
try tiny.json --gpus 1,2 --csv -
try no.json --gpus 1,2 --csv gpus.csv
try no.json --gpus 1,x
try tiny.json --allocator exact --steps 3
try tiny.json --allocator torc
