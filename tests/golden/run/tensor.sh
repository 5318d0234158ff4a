# SPDX-License-Identifier: GPL-3.0-or-later
# Ranks split layers: what a rank has, what it waits for, and what is refused.
"$MEMSIM" run llama-3-8b --policy tensor:4,sp+zero:1 --gpus 8
"$MEMSIM" run llama-3-8b -p tensor:8,sp+checkpoint:full --json >out
sed -nE 's/.*"stalls": (\{[^}]*\}).*/\1/p; s/.*("groups": \{[^}]*\}).*/\1/p' out
refuse() {
    echo "memsim run $*"
    "$MEMSIM" run "$@" 2>&1 && echo "it ran"
}
refuse llama-3-8b -p tensor:5
refuse falcon-7b -p tensor:2
refuse llama-3-8b -p tensor:4,sp --sequence 1001
refuse llama-3-8b -p tensor:4+zero:1 --gpus 18
refuse resnet50 -p tensor:2,sp
refuse mixtral-8x7b -p tensor:2
refuse llama-3-8b -p tensor:2 --precision fp8
refuse llama-3-8b -p tensor:2 --kernels megatron --set lora.rank=8 \
    --set lora.base=nf4
"$MEMSIM" run llama-3-8b -p tensor:2,sp --set lora.rank=8 |
    grep -A 1 -E '^(states|verdict):'
"$MEMSIM" run llama-3-8b -p tensor:4,sp --kernels megatron --precision fp8 |
    grep -A 1 -E '^(states|verdict):'
true
