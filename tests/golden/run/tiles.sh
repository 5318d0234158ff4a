# SPDX-License-Identifier: GPL-3.0-or-later
# MLPs and the loss in pieces: what that leaves, and what is refused.
# keep: model, policy, step, peak, at peak, note, verdict
"$MEMSIM" run gpt2 --sequence 1024 --batch 8 --set training.mlp_tiles=4 \
    --set training.loss_kernel=tiled -p zero:3,dp=8+checkpoint:full
refuse() {
    echo "memsim run $*"
    "$MEMSIM" run "$@" 2>&1 && echo "it ran"
}
refuse gpt2 --set mlp=4 -p tensor:2
refuse gpt2 --set tiled_mlp=4 --kernels megatron
refuse gpt2 --set mlp_tiles=4 --precision autocast-bf16
refuse gpt2 --set mlp_tiles=4 --precision fp8
refuse gpt2 --set mlp_tiles=-2
refuse gpt2 --set mlp_tiles=tiled
refuse resnet50 --set mlp_tiles=4
refuse resnet50 --set loss=tiled
refuse bert-base --set loss=tiled
true
