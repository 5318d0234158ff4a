#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Megatron core's BERT, on one node.
torchrun --nproc_per_node 8 examples/../pretrain_bert.py \
    --attention-backend unfused \
    --bf16 \
    --deterministic-mode \
    --global-batch-size 128 \
    --hidden-size 1024 \
    --max-position-embeddings 512 \
    --micro-batch-size 4 \
    --no-gradient-accumulation-fusion \
    --num-attention-heads 16 \
    --num-layers 24 \
    --pipeline-model-parallel-size 2 \
    --seq-length 512 \
    --tensor-model-parallel-size 2 \
    --train-iters 50
