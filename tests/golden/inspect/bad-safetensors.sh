# SPDX-License-Identifier: GPL-3.0-or-later
# The header of weights beside a config.json: read, and held against it.
mkdir hf-llama
cp hf-llama.json hf-llama/config.json
bytes() { # number -> 8 bytes, little-endian
    n=$1
    for _ in 1 2 3 4 5 6 7 8; do
        # shellcheck disable=SC2059 # an octal escape
        printf "\\$(printf '%03o' $((n % 256)))"
        n=$((n / 256))
    done
}
write() { # header, file
    bytes "${#1}" >"$2"
    printf '%s' "$1" >>"$2"
}
try() { # header
    write "$1" hf-llama/model.safetensors
    "$MEMSIM" inspect hf-llama 2>&1 | head -n 4
}
tensor() { # name, dtype, shape, bytes
    printf '"%s": {"dtype": "%s", "shape": [%s], "data_offsets": [0, %s]}' "$@"
}
up=$(tensor model.layers.2.mlp.up_proj.weight BF16 176,64 22528)
good=$(tensor model.embed_tokens.weight BF16 1000,64 128000)
try "{\"__metadata__\": {\"format\": \"pt\"}, $good, $up}"
try "{$(tensor model.embed_tokens.weight BF16 1200,64 153600), $up}"
try "{$good}, "
try "{$(tensor model.layers.3.mlp.up_proj.weight BF16 176,64 22528)}"
try "{$(tensor model.layers.0.mlp.down_proj.weight F32 64,170 43520), $up}"
try "{$(tensor model.embed_tokens.weight BF16 1000,64 12800)}"
try "{$(tensor model.embed_tokens.weight Q7 1000,64 12800)}"
try '{"a": {"dtype": "F32", "data_offsets": [0, 4]}}'
try '{"a": 3}'
try '[1]'
# What a setting changes is not held against it.
try "{$(tensor model.embed_tokens.weight BF16 1200,64 153600), $up}"
"$MEMSIM" inspect hf-llama --set model.vocab_size=1200 | head -n 1
printf 'abc' >hf-llama/model.safetensors
"$MEMSIM" inspect hf-llama 2>&1
bytes 100000001 >hf-llama/model.safetensors
"$MEMSIM" inspect hf-llama 2>&1
bytes 1000 >hf-llama/model.safetensors
"$MEMSIM" inspect hf-llama 2>&1
# Several files and their index; those that are not here are passed over.
rm hf-llama/model.safetensors
write "{$good, $(tensor model.layers.4.mlp.up_proj.weight BF16 176,64 22528)}" \
    hf-llama/one.safetensors
index=hf-llama/model.safetensors.index.json
echo '{"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}' >$index
"$MEMSIM" inspect hf-llama | head -n 1
echo '{"weight_map": {"a": "one.safetensors", "b": "one.safetensors"}}' >$index
"$MEMSIM" inspect hf-llama 2>&1
echo '{"weight_map": {"a": "../one.safetensors"}}' >$index
"$MEMSIM" inspect hf-llama 2>&1
echo '{}' >$index
"$MEMSIM" inspect hf-llama 2>&1
