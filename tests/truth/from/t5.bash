#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Megatron core's T5, on one node.
torchrun --nproc_per_node 8 pretrain_t5.py \
    --attention-backend unfused \
    --bf16 \
    --calculate-per-token-loss \
    --decoder-num-layers 12 \
    --decoder-seq-length 128 \
    --deterministic-mode \
    --encoder-num-layers 12 \
    --encoder-seq-length 512 \
    --ffn-hidden-size 3072 \
    --global-batch-size 32 \
    --hidden-size 768 \
    --kv-channels 64 \
    --max-position-embeddings 512 \
    --micro-batch-size 4 \
    --num-attention-heads 12 \
    --pipeline-model-parallel-size 1 \
    --tensor-model-parallel-size 4 \
    --tokenizer-type BertWordPieceCase \
    --train-iters 100 \
    --transformer-impl transformer_engine \
    --vocab-extra-ids 100
