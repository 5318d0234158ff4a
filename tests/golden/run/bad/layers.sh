# SPDX-License-Identifier: GPL-3.0-or-later
# Layers whose inputs or fields contradict their type: the shape of a sample,
# the layer; "z" is a copy of the input.
while IFS=';' read -r shape layer; do
    printf '{"memsim": 1, "name": "bad", "input": {"shape": %s}, "layers": [
 {"type": "clone", "name": "x", "inputs": ["input"]},
 {"type": "slice", "name": "z", "length": 2, "inputs": ["x"]},
 {"name": "y", %s},
 {"type": "mean"}]}\n' "$shape" "$layer" >bad.json
    echo "$layer"
    "$MEMSIM" run ./bad.json 2>&1 | sed -n 1,2p
done <<'END'
[4, 6];"type": "add", "inputs": ["z", "x"]
[4, 6];"type": "lstm", "hidden": 8, "inputs": ["x"], "num_layers": 0
[4, 6, 2];"type": "gru", "hidden": 8, "inputs": ["z"]
[4, 6];"type": "moe", "experts": 2, "top_k": 3, "hidden": 8, "inputs": ["z"]
[4, 6];"type": "moe", "experts": 2, "hidden": 8, "gated": 0
[4, 6];"type": "matmul", "inputs": ["x", "z"]
[4, 6];"type": "einsum", "equation": "bij,bkj", "inputs": ["x", "z"]
[4, 6];"type": "einsum", "equation": "bij,bkj->bi", "inputs": ["x", "z"]
[4, 6];"type": "scaled_dot_product_attention", "inputs": ["z", "x", "x"]
[4, 6];"type": "rotary", "inputs": ["z"]
[4, 6];"type": "conv3d", "out": 2, "kernel": 3, "inputs": ["z"]
[4, 6];"type": "conv_transpose1d", "out": 3, "kernel": 3, "groups": 2
[4, 6];"type": "max_pool1d", "kernel": 7, "inputs": ["z"]
[4, 6];"type": "upsample", "mode": "bilinear", "inputs": ["z"]
[4, 6, 6];"type": "pixel_shuffle", "factor": 3, "inputs": ["z"]
[4, 6, 6];"type": "pixel_unshuffle", "factor": 4, "inputs": ["z"]
[4, 6];"type": "sum", "dims": [2], "inputs": ["z"]
[4, 6];"type": "norm", "inputs": ["z"]
[4, 6];"type": "softmax", "dims": [1], "inputs": ["z"]
[4, 6];"type": "split", "sizes": [1, 2], "inputs": ["z"]
[4, 6];"type": "stack", "inputs": ["x", "z"]
[4, 6];"type": "assign", "length": 3, "inputs": ["x", "z"]
[4, 6];"type": "select", "dim": 1, "index": 6, "inputs": ["z"]
[4, 6];"type": "topk", "k": 7, "inputs": ["z"]
[4, 6];"type": "pad", "sizes": [1, 1, 1], "inputs": ["z"]
[4, 6];"type": "glu", "dim": 2, "inputs": ["z"]
[4, 5];"type": "glu", "dim": 1, "inputs": ["z"]
[4, 6];"type": "flip", "dim": 2, "inputs": ["z"]
[4, 6];"type": "repeat", "times": 0, "inputs": ["z"]
[4, 6];"type": "instance_norm", "inputs": ["w"]
END
