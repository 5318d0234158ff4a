# SPDX-License-Identifier: GPL-3.0-or-later
# Words of other programs are understood, or the message says what to type.
try() {
    echo "\$ memsim $*"
    "$MEMSIM" "$@" 2>&1 | grep -v '^defaults\|^   *[a-z_]*=' | head -4
}
settings() { # some of those that were given, in memsim's words
    "$MEMSIM" "$@" --json | tr ',' '\n' | grep -o '"[a-z.]*": "*[a-z0-9:-]*' |
        grep -E '"(policy|model|device|training.(batch|sequence|precision))"'
}
settings run GPT-2 --batch-size 2 --seq_len 64 --device RTX-4090 \
    --precision bfloat16 --framework torch-2.5 -p gradient_checkpointing
try run tiny.json --batch 4 --batch-size 8
try run tiny.json batch-size=4
try run tiny.json checkpoint:sqrt
try run tiny.json H100
try run tiny.json -batch 4
try run tiny.json -b 4
try run tiny.json --set max_seq=4
try run tiny.json --set micro_batch_size=4
try run tiny.json --set lora.alpha=4
try run tiny.json --tensor-parallel-size 8
try run tiny.json --gradient-accumulation-steps 4
try run tiny.json --gpu h100
try run tiny.json --memory 80
try run tiny.json --memory 80gb
try run tiny.json --device tpu-v5
try run tiny.json --device A5000
try run tiny.json -p lora
try run tiny.json -p checkpoint:sqrt+deepspeed
try run tiny.json -p zero3
try run tiny.json --optimizer paged_adamw_8bit
try run tiny.json --precision amp
try run tiny.json --framework jax
try run meta-llama/Llama-3-8B
try run mistral-7b-v0.1
try run gpt-4o
try sweep tiny.json --grid batch_size=1,2 --grid gradient_checkpointing=1
try sweep tiny.json --grid memory=80,160
try gpt2
try models
try --help-all
