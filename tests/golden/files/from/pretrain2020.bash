GPUS_PER_NODE=8
torchrun pretrain_gpt2.py --num-layers 24 --hidden-size 1024 --num-attention-heads 16 --batch-size 4 --seq-length 1024 --max-position-embeddings 1024 --model-parallel-size 2 --checkpoint-activations --checkpoint-num-layers 2 --fp16 --vocab-size 50257
