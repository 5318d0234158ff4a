# SPDX-License-Identifier: GPL-3.0-or-later
# Layers of multi-token prediction among the stages, and stages without layers.
cat >config.json <<'END'
{"model_type": "deepseek_v3", "vocab_size": 1000, "hidden_size": 256,
 "num_hidden_layers": 5, "num_attention_heads": 8, "num_key_value_heads": 8,
 "intermediate_size": 512, "moe_intermediate_size": 128,
 "n_routed_experts": 4, "n_group": 1,
 "topk_group": 1, "num_experts_per_tok": 2, "q_lora_rank": 64,
 "kv_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16,
 "v_head_dim": 32, "first_k_dense_replace": 1, "max_position_embeddings": 256}
END
stages() {
    echo "$@"
    "$MEMSIM" run config.json --batch 8 --allocator exact "$@" 2>&1 |
        sed -n '/^stages:/,/^ *3 /p; /^memsim:/,$p'
}
predict() {
    p=$1
    shift
    stages --set model.mtp="$p" -p "microbatch:8+pipeline:$1"
}
predict 1 4
predict 1 4,layers=2/2/1/0
predict 1 4,layers='Ett|tt|tm|L'
predict 2 4,layers='Ett|tt|t|mmL'
predict 1 4,layers='Ett||ttt|mL'
predict 1 4,layers='Et||t|||ttt||mL'
predict 0 2,layers='Ett|tttmL'
predict 2 2,layers='Ett|tttmL'
predict 1 2,layers='Ett|tttm||L'
predict 1 2,layers='Ett|ttt|mL'
"$MEMSIM" run config.json --batch 2 --set model.mtp=1 --dump program \
    -p microbatch:2+pipeline:4,layers='Ett|ttt||mL' 2>&1 |
    grep -E '^stage |^(recv|send|run).*rank 2'
cat >pretrain.sh <<'END'
torchrun --nproc_per_node 4 pretrain_gpt.py --num-layers 5 --hidden-size 256 \
    --num-attention-heads 8 --seq-length 256 --max-position-embeddings 256 \
    --micro-batch-size 1 --global-batch-size 8 --bf16 \
    --pipeline-model-parallel-size 4 --mtp-num-layers 1 \
    --pipeline-model-parallel-layout "Ett|(t|)*2,t|,mL"
END
"$MEMSIM" run --from pretrain.sh 2>&1
sed 's/|,mL/mL/' pretrain.sh >right.sh
"$MEMSIM" run config.json --from right.sh 2>&1 |
    grep -E '^memsim|^stages' -A 4
