# SPDX-License-Identifier: GPL-3.0-or-later
# Settings of mixtures of experts: prediction of further tokens, imbalance,
# one expert after another.
cat >config.json <<'END'
{"model_type": "deepseek_v3", "vocab_size": 1000, "hidden_size": 256,
 "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 8,
 "intermediate_size": 512, "moe_intermediate_size": 128,
 "n_routed_experts": 4, "n_group": 1,
 "topk_group": 1, "num_experts_per_tok": 2, "q_lora_rank": 64,
 "kv_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16,
 "v_head_dim": 32, "first_k_dense_replace": 1, "max_position_embeddings": 256}
END
saved() {
    "$MEMSIM" run config.json --json "$@" |
        grep -o '"saved_for_backward_bytes": [0-9]*'
}
"$MEMSIM" inspect config.json --set model.mtp=1 2>&1
saved
saved --set model.mtp=1
saved --set model.imbalance=1.5
saved --set model.experts_run=loop
saved --set model.experts_run=each
saved --set model.loss_shift=logits
saved --kernels eager
saved --kernels efficient
"$MEMSIM" run config.json --set model.imbalance=0.5 2>&1
"$MEMSIM" run config.json --set model.experts_run=single 2>&1
"$MEMSIM" run config.json --set model.experts_run=each --precision fp8 \
    --kernels megatron 2>&1
