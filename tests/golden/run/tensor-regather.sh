# SPDX-License-Identifier: GPL-3.0-or-later
# What products have gathered is saved, or gathered again (nanotron).
# keep: policy, step, peak
for how in tensor:4,sp tensor:4,sp,regather=0; do
    "$MEMSIM" run llama-3-8b --kernels megatron --policy "$how" |
        grep -A 3 -E '^(policy|step|peak):'
done
refuse() {
    echo "memsim run $*"
    "$MEMSIM" run "$@" 2>&1 && echo "it ran"
}
refuse llama-3-8b -p tensor:4,sp,regather=1
refuse llama-3-8b --kernels megatron -p tensor:4,regather=0
refuse llama-3-8b --kernels megatron -p tensor:4,sp,regather=0,overlap
refuse llama-3-8b --kernels megatron --precision fp8 -p tensor:4,sp,regather=0
refuse llama-3-8b --kernels megatron -p tensor:4,sp,regather=2
"$MEMSIM" run llama-3-8b -p tensor:4,sp,regather=0 --json >/dev/null
true
