#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Tensor parallelism and the distributed optimizer, on one node.
GPUS_PER_NODE=8
NNODES=1
MODEL=(
    --num-layers 12 --hidden-size 512 --num-attention-heads 8
    --seq-length 1024 --max-position-embeddings 1024
    --transformer-impl transformer_engine --attention-backend unfused
)
TRAINING="--micro-batch-size 4 --global-batch-size 32 --bf16 \
    --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather \
    --deterministic-mode --no-gradient-accumulation-fusion"
torchrun --nproc_per_node "$GPUS_PER_NODE" --nnodes $NNODES pretrain_gpt.py \
    "${MODEL[@]}" $TRAINING --tensor-model-parallel-size 4 --data-path "$1"
