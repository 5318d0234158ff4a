#!/bin/bash
EP_SIZE=1
ACTIVATION_CHECKPOINT="true"
DS_CONFIG=ds_written.json
options=" \
    --override-lr-scheduler \
    --tensor-model-parallel-size 4 \
    --num-experts ${EP_SIZE} \
    --micro-batch-size 2 \
    --rampup-batch-size 32 32 1953125 \
    --global-batch-size 512 \
    --num-layers 24 --hidden-size 2048 --num-attention-heads 16 \
    --seq-length 2048 --max-position-embeddings 2048 \
    --fp16"
if [ "${ACTIVATION_CHECKPOINT}" = "true" ]; then
options="${options} \
    --checkpoint-activations"
fi
if [[ $EP_SIZE -gt 1 ]]; then
options="${options} \
    --create-moe-param-group"
fi
cat <<EOT >$DS_CONFIG
{ "train_batch_size": 512, "zero_optimization": { "stage": 2 } }
EOT
run_cmd="deepspeed pretrain_gpt.py ${options} --deepspeed --zero-stage=2 --cpu-optimizer --deepspeed_config=$DS_CONFIG"
eval ${run_cmd}
