#!/bin/bash
GPUS_PER_NODE=8
NUM_NODES=1
WORLD_SIZE=$(($GPUS_PER_NODE*$NUM_NODES))
DATA_PATH=$4 #<Specify path and file prefix>_text_document

BERT_MODEL_ARGS=(
    --num-layers 24 
    --hidden-size 1024 
    --num-attention-heads 16 
    --seq-length 512 
    --max-position-embeddings 512 
    --attention-backend auto # Can use (flash/fused/unfused/local)
)
torchrun --nproc_per_node $GPUS_PER_NODE examples/bert/pretrain_bert.py \
    ${BERT_MODEL_ARGS[@]} --micro-batch-size 4 --fp16 \
    --data-path $DATA_PATH
