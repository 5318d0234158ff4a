# SPDX-License-Identifier: GPL-3.0-or-later
# What can be wrong with a config.json of Hugging Face; both keys where two
# contradict each other.
try() {
    printf '%s\n' "$1" >config.json
    shift
    "$MEMSIM" inspect config.json "$@" 2>&1
    echo "exit $?"
}
try '{"model_type": "lama", "hidden_size": 64}'
try '{"model_type": "resnet"}'
try '{"hidden_size": 64, "num_hidden_layers": 2}'
try '{"model_type": 7}'
try '{"model_type": "llama", "hidden_size": "64"}'
try '{"model_type": "llama", "hidden_size": null}'
try '{"model_type": "llama", "num_hidden_layers": 0}'
try '{"model_type": "llama", "vocab_size": -1}'
try '{"model_type": "llama", "hidden_size": 99999999999999}'
try '{"model_type": "llama", "hidden_size": 100000000,
 "num_attention_heads": 1}'
try '{"model_type": "llama", "num_hidden_layers": 2000000}'
try '{"model_type": "llama", "hidden_size": 100, "num_attention_heads": 7}'
try '{"model_type": "llama",
 "num_key_value_heads": 5}'
try '{"model_type": "llama", "num_key_value_heads": 0}'
try '{"model_type": "gpt2", "n_embd": 64,
 "hidden_size": 128}'
try '{"model_type": "llama", "hidden_act": "mish"}'
try '{"model_type": "llama", "architectures": ["LlamaForImageClassification"]}'
try '{"model_type": "llama", "architectures": "LlamaForCausalLM"}'
try '{"model_type": "mixtral", "num_local_experts": 2,
 "num_experts_per_tok": 3}'
try '{"model_type": "gemma3_text", "layer_types": ["full_attention"]}'
try '{"model_type": "t5", "is_gated_act": true}'
try '{"model_type": "bert", "num_labels": 3, "id2label": {"0": "a"}}'
try '{"model_type": "vit", "image_size": 8}'
try '{"model_type": "llama"}' --set model.hiden_size=3
try '{"model_type": "llama"}' --set model.head=mlm
try '{"model_type": "llama"}' --set model.head=classes:0
try '{"model_type": "llama"}' --set model.mtp=1
try '{"model_type": "llama"}' --set model.num_attention_heads=7
try '{"model_type": "deepseek_v3"}' --set model.mtp=two
try '{"model_type": "deepseek_v3"}' --set model.mtp=101
try '{"model_type": "deepseek_v3", "n_group": 7}'
try '{"model_type": "deepseek_v3", "topk_group": 9}'
try '{"architectures": ["LlamaForCausalLM"]}'
try '{"model_type": "llama", "family": "decoder"}'
try '{"layers": [], "hidden_size": 64}'
mkdir empty
"$MEMSIM" run empty 2>&1
"$MEMSIM" run ./no-such-folder 2>&1
printf '{"model_type": "gemma3"}' >config.json
"$MEMSIM" run config.json 2>&1
"$MEMSIM" explain config.json 2>&1
printf '{"model_type": "deepseek_v3", "n_routed_experts": null}' >config.json
"$MEMSIM" explain config.json --set model.mtp=1 2>&1
echo "exit $?"
