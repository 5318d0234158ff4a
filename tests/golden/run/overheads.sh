# SPDX-License-Identifier: GPL-3.0-or-later
# What a process takes of its device besides what the step allocates, by name:
# the context, NCCL's buffers; cuBLAS workspaces lie in the pool.
used() {
    echo "$*:"
    "$MEMSIM" run tiny.json --device a100 "$@" >text
    sed -n '/^device:/,/^[^ d]/p' text | sed '/^[^ d]/d'
    sed -n '/^process:/p' text
}
used
used --set training.cuda_loading=eager
used --set training.cuda=11.3
used --set training.cuda=11.7
used --set training.cuda=dgx-station
used --set training.cublas_workspace=:4096:8
used --set training.cublas_workspace=:0:0
used -p ddp:dp=2
used -p zero:3,dp=8
used -p zero:3,dp=8 --set training.nccl_channels=2
used -p zero:3,dp=8 --set training.nccl_buffsize=1048576
used -p fsdp:dp=16,shard=8
used --set training.device=cpu
"$MEMSIM" run tiny.json -p zero:3,dp=8 --json |
    keep 'capacity_bytes, context_bytes, headroom_bytes, device_used_bytes,
        overheads'
"$MEMSIM" explain tiny.json --top 1 -p zero:3,dp=8
"$MEMSIM" explain tiny.json --top 1 -p ddp:dp=2 --json |
    grep -o '"total_bytes.*"groups"'
# The allocator has what the others leave.
"$MEMSIM" run tiny.json -p zero:3,dp=8 --memory 2167MiB --check -q
echo "status $?"
"$MEMSIM" run tiny.json -p zero:3,dp=8 --memory 2166MiB --check -q
echo "status $?"
echo '{"like": "h100", "context_eager_mib": 900, "nccl_mib": 0}' >mine.json
"$MEMSIM" run tiny.json --device mine.json -p ddp:dp=2 \
    --set training.cuda_loading=eager | grep -A 3 ^device:
# cuDNN's kernels are there where something convolves.
"$MEMSIM" run resnet18 --device a100 --set training.cuda=dgx-station |
    grep -A 2 ^device:
"$MEMSIM" run tiny.json --device a100 --set training.cuda_loading=eager \
    --set training.cuda=11.7
echo "status $?"
for wrong in training.cuda_loading=eager training.cuda=11.3 \
    training.cuda=12 training.cudnn=fast training.cublas_workspace=:4096 \
    training.cublas_workspace=:x:1 training.cublas_workspace=-2 \
    training.cublas_workspace=:1099511627776:2 training.nccl_channels=-1; do
    "$MEMSIM" run tiny.json --set $wrong
    echo "status $?"
done
