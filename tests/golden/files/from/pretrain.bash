#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NNODES=${SLURM_NNODES:-2}
WORLD_SIZE=$(($GPUS_PER_NODE*$NNODES))
DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NNODES
)
GPT_MODEL_ARGS=(
    --num-layers 32 --hidden-size 4096
    --num-attention-heads 32 # heads
    --group-query-attention --num-query-groups 8
    --seq-length 4096
    --max-position-embeddings 4096
    --swiglu --normalization RMSNorm --disable-bias-linear
    --position-embedding-type rope
    --untie-embeddings-and-output-weights
    --attention-dropout 0 --hidden-dropout 0 --ffn-hidden-size 14336
)
TRAINING_ARGS="--micro-batch-size 1 --global-batch-size 256 --bf16 \
    --lr 6.0e-5 --clip-grad 1.0 --use-distributed-optimizer \
    --overlap-grad-reduce"
PAR="--tensor-model-parallel-size 4 --sequence-parallel \
    --pipeline-model-parallel-size 2"
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \
    ${GPT_MODEL_ARGS[@]} \
    $TRAINING_ARGS $PAR \
    --recompute-granularity full --recompute-method block \
    --recompute-num-layers 4 --data-path $1

echo done
