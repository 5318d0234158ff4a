# SPDX-License-Identifier: GPL-3.0-or-later
# Settings change keys of a config.json, by any of their names, and the head.
mkdir hf-llama
cp hf-llama.json hf-llama/config.json
count() {
    "$MEMSIM" inspect hf-llama --json "$@" | grep -o '"parameters": [0-9]*' |
        head -n 1
}
count
count --set model.num_hidden_layers=4
count --set model.tie_word_embeddings=false
count --set model.num_key_value_heads=null
count --set model.head=none
count --set model.head=classes:7
count --set model.model_type=qwen3 --set model.head=lm
"$MEMSIM" sweep hf-llama --grid model.num_hidden_layers=1,2 \
    --grid policy=none,checkpoint:full |
    cut -d , -f 1-7
"$MEMSIM" compare hf-llama -p none -p checkpoint:full --json |
    grep -o '"allocated_bytes": [0-9]*' | head -n 2
"$MEMSIM" fit hf-llama --memory 1GiB --json | grep -o '"status": "[a-z_]*"' |
    head -n 1
