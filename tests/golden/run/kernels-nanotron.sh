# SPDX-License-Identifier: GPL-3.0-or-later
# nanotron's kernels: what a layer saves, beside pipelines, and what is refused.
# keep: layer, saved, policy, step, peak
"$MEMSIM" inspect llama-3-8b --kernels nanotron --sequence 4096 --batch 2 |
    grep -E '^(layer |layers.0|loss|total)'
for how in tensor:4,sp tensor:4,sp,regather=0; do
    "$MEMSIM" run llama-3-8b --kernels nanotron --gpus 16 --batch 16 \
        --policy "$how+pipeline:4,layers=9/9/9/5+microbatch:8" --rank 0 |
        grep -A 3 -E '^(policy|step|peak):'
done
"$MEMSIM" run gpt2 --kernels nanotron | grep -A 3 -E '^peak:'
refuse() {
    echo "memsim run $*"
    "$MEMSIM" run "$@" 2>&1 && echo "it ran"
}
refuse llama-3-8b --kernels nanotron -p context:2
refuse qwen3-8b --kernels nanotron
refuse llama-3-8b --kernels nanotrom
true
