# SPDX-License-Identifier: GPL-3.0-or-later
# Settings of Megatron that contradict each other, or the model.
try() {
    { "$MEMSIM" run "$@" >out; } 2>&1
    echo "exit $?"
}
try gpt2 --set megatron.attention=flash
try gpt2 --kernels megatron --set megatron.spec=local \
    --set megatron.attention=flash
try gpt2 --kernels megatron --set megatron.deterministic=yes \
    --set megatron.loss=native
try gpt2 --kernels megatron --precision autocast-bf16
try gpt2 --kernels megatron --set training.device=cpu
try gpt2 --kernels megatron --set training.optimizer_in_backward=yes
try gpt2 --kernels megatron --set megatron.atention=flash
try gpt2 --kernels megatron --set training.attention_kernel=eager
try gpt2 --kernels megatron --set training.rotary_kernel=eager
try gpt2 --kernels megatorn
try gpt2 --kernels megatron --set model.qk_norm=width
try llama-3-8b --kernels megatron --set model.code=llama
