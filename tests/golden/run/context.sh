# SPDX-License-Identifier: GPL-3.0-or-later
# Ranks divide a sequence: what a rank has, and what is refused.
# keep: model, policy, step, tokens, peak, verdict
"$MEMSIM" run llama-3-8b --sequence 32768 -p checkpoint:full \
    --policy context:4+zero:1 --gpus 8
"$MEMSIM" run llama-3-8b --sequence 65536 --set mlp_tiles=-1 \
    --set loss=tiled -p checkpoint:full --policy context:16+zero:3 --gpus 16
refuse() {
    echo "memsim run $*"
    "$MEMSIM" run "$@" 2>&1 && echo "it ran"
}
refuse llama-3-8b -p context:3
refuse llama-3-8b -p context:64
refuse llama-3-8b --kernels megatron -p context:16,mode=a2a
refuse llama-3-8b -p context:4+zero:1 --gpus 6
refuse gpt2 --kernels eager -p context:2,mode=ring
refuse gpt2 --kernels megatron --set megatron.attention=unfused -p context:2
refuse resnet50 -p context:2
true
