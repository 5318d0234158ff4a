#!/bin/bash
# variables, arrays, branches, a document: nothing of it is run
MODEL_SIZE="${MODEL_SIZE:-70}"
TP="${TP:-8}"
NNODES=${SLURM_NNODES:-"2"}
GPUS_PER_NODE=8
RECOMPUTE="${RECOMPUTE:-0}"
DTYPE="fp8"
if [[ $MODEL_SIZE -eq 8 ]]; then # 8B
    HIDDEN_SIZE=4096
    NUM_LAYERS=32
elif [[ $MODEL_SIZE -eq 70 ]]; then
    HIDDEN_SIZE=8192
    NUM_LAYERS=80
else
    echo "Model size not supported."
    exit 1
fi
NUM_HEADS=64
NUM_KV_HEADS=8
GROUP_SIZE=$(( ${NUM_HEADS} / ${NUM_KV_HEADS} ))
NUM_GROUPS=$(( ${NUM_HEADS} / ${GROUP_SIZE} ))
GPT_ARGS="
    --tensor-model-parallel-size ${TP} \
    --num-layers $NUM_LAYERS \
    --hidden-size $HIDDEN_SIZE \
    --num-attention-heads $NUM_HEADS \
    --seq-length 4096 \
    --max-position-embeddings 4096 \
    --swiglu --disable-bias-linear --normalization RMSNorm \
    --micro-batch-size 1 --global-batch-size 8 --bf16 \
"
if [ "$RECOMPUTE" -eq 1 ]; then
    GPT_ARGS="$GPT_ARGS --recompute-num-layers $NUM_LAYERS \
        --recompute-granularity full \
        --recompute-method block \
        "
fi
cat <<EOF > note.txt
if only this were a condition
--hidden-size 1
EOF
DTYPE_ARGS=()
if [[ "$DTYPE" == "fp8" ]]; then
    DTYPE_ARGS+=(
        "--fp8-format hybrid"
        "--fp8-amax-history-len 1024"
    )
fi
if [ -n "$SAVE_CKPT_PATH" ]; then
    EXTRA="--sequence-parallel --save-interval 3"
fi
case $CLUSTER in
    a) CP=2 ;;
    *) CP=1 ;;
esac
ARGS=(--group-query-attention --num-query-groups $NUM_GROUPS
    --use-distributed-optimizer # here, too
    --context-parallel-size $CP)
torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NNODES pretrain_gpt.py \
    $GPT_ARGS "${ARGS[@]}" ${DTYPE_ARGS[@]} 2>&1 | tee log
