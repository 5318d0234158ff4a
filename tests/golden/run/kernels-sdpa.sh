# SPDX-License-Identifier: GPL-3.0-or-later
# What PyTorch chooses on each device and in each precision; an op graph has
# chosen already.
attention() {
    "$MEMSIM" run tiny-llama.json --batch 1 --sequence 16 --kernels sdpa \
        "$@" --dump graph |
        sed -n 's/^op [0-9]* \(aten::_scaled[a-z_]*\) .*/\1/p' | sort | uniq -c
}
attention
attention --precision fp32
attention --device t4 --precision fp16
attention --framework torch-1.13
"$MEMSIM" run ops.json --set training.norm_kernel=liger
