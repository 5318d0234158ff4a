#!/bin/bash
NNODES=${NNODES:-"2"}
NPROC_PER_NODE=8 CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 llamafactory-cli train \
    --stage sft --do_train \
    --model_name_or_path 'meta-llama/Llama-2-7b-hf' \
    --dataset alpaca_gpt4_en,glaive_toolcall \
    --template default \
    --finetuning_type lora --lora_target q_proj,v_proj --lora_rank 8 \
    --optim adamw_8bit \
    --cutoff_len 1024 \
    --per_device_train_batch_size 1 \
    --gradient_accumulation_steps 8 \
    --fp8 --fp8_backend torchao --fp8_enable_fsdp_float8_all_gather
