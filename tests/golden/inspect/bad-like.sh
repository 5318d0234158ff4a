# SPDX-License-Identifier: GPL-3.0-or-later
# Models that are like a built-in one, and what is wrong with them.
while read -r keys; do
    echo "$keys"
    printf '{"memsim": 1, "name": "mine",\n %s}\n' "$keys" >mine.json
    "$MEMSIM" inspect ./mine.json 2>&1 | head -7
done <<'END'
"like": "llama-3-8b"
"like": "llama-3-8b.json", "config": {"hidden": 128, "heads": 4}
"like": "llama-13b", "config": {"layers": 2}
"like": "mixtral-8x22b", "config": {"layers": 2, "experts": 4}
"like": "llama-3-8c"
"like": "./mine.json"
"like": "mine"
"like": 3
"like": "llama-3-8b", "family": "decoder"
"like": "llama-3-8b", "layers": []
"like": "llama-3-8b", "input": {}
"like": "llama-3-8b", "config": 3
"like": "llama-3-8b", "config": {"hiden": 64}
"like": "llama-3-8b", "config": {"hidden": 65}
"like": "llama-3-8b", "config": {"hidden": 64, "name": "x"}
"like": "mixtral-8x22b", "config": {"head": 64}
"like": "mixtral-8x22b", "config": {"heads": 0}
"like": "mixtral-8x22b", "config": {"heads": "4"}
"like": "mixtral-8x22b", "config": {"top_k": 9}
"like": "mixtral-8x22b", "confg": {"top_k": 64}
END
"$MEMSIM" inspect mixtral-8x22b --set model.layers=1 --set model.hidden=64 2>&1
"$MEMSIM" inspect mixtral-8x22b --dump model
