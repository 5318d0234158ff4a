# SPDX-License-Identifier: GPL-3.0-or-later
# Fields of attention that do not go together, and layers made wrongly.
try() { # layers
    printf '{"input": {"tokens": true}, "layers": [
 {"type": "embedding", "vocab": 10, "dim": 8}, %s,
 {"type": "mean"}]}\n' "$1" >model.json
    "$MEMSIM" inspect model.json 2>&1 | head -n 5
}
try '{"type": "attention", "heads": 2, "qk_norm": "head"}'
try '{"type": "attention", "heads": 2, "rotary": true, "complex": true,
  "rotary_dim": 2}'
try '{"type": "attention", "heads": 2, "rotary": true, "rotary_dim": 8}'
try '{"type": "attention", "heads": 2, "rotary": true, "packed": true}'
try '{"type": "relative_attention", "heads": 2, "head_dim": 4,
  "inputs": ["embedding1", "embedding1"]}'
try '{"type": "learned_tokens", "tokens": 1, "name": "a"},
 {"type": "relative_bias", "heads": 2}'
try '{"type": "select"}, {"type": "latent_attention", "heads": 2,
  "kv_rank": 4, "plain_dim": 2, "rotary_dim": 2, "value_dim": 2}'
try '{"type": "select"}, {"type": "learned_tokens"}'
try '{"type": "attention", "heads": 2, "head_dim": 3, "rotary": true}'
try '{"type": "attention", "heads": 3}'
try '{"type": "attention", "heads": 4, "kv_heads": 3, "head_dim": 2}'
try '{"type": "moe", "experts": 4, "top_k": 8, "hidden": 64}'
