# SPDX-License-Identifier: GPL-3.0-or-later
# Megatron-LM's CI, gpt3_mcore_te_tp1_pp1_dist_optimizer on a DGX A100, and how
# its attention, its loss and its own layers differ.
set -- mcore.json --device a100 --batch 4 -p zero:1,dp=8,impl=megatron \
    --kernels megatron
cat >mcore.json <<'END'
{"memsim": 1, "name": "mcore", "family": "decoder",
 "config": {"layers": 12, "hidden": 512, "heads": 8, "vocab": 50257,
            "vocab_pad_to": 128, "positions": 1024}}
END
"$MEMSIM" run "$@" --set megatron.attention=unfused \
    --set megatron.deterministic=yes |
    keep 'model, policy, step, traffic, states, peak, at peak, note'
for set in attention=fused attention=flash spec=local loss=native loss=te \
    mask=no wgrad=apart; do
    printf '%s ' "$set"
    "$MEMSIM" run "$@" --set "megatron.$set" --json |
        sed 's/.*"peak": {"allocated_bytes": \([0-9]*\).*/\1/'
done
# Its ops by name, and what stays beside the states.
"$MEMSIM" run mcore.json --kernels megatron --batch 1 --set model.layers=1 \
    --set megatron.spec=local --dump graph |
    grep -Eo "bias_dropout_add|mpu|(position|loss|attention)_[a-z]*" |
    sort | uniq -c
