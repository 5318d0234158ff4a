# SPDX-License-Identifier: GPL-3.0-or-later
# Layer lists with LSTMs and with a mixture of experts, under policies: bytes
# kept after the loss, time spent on recomputation.
for model in lstm moe; do
    for policy in none checkpoint:sqrt microbatch:2 \
        checkpoint:sqrt+microbatch:2; do
        echo "$model $policy"
        "$MEMSIM" run ./$model.json --batch 8 --sequence 32 -p "$policy" \
            --json -q | tr '{,' '\n' |
            grep -E '"(status|saved_for_backward_bytes|recompute_ns)":' |
            head -n 3
    done
done
"$MEMSIM" inspect ./moe.json --sequence 32 --json |
    grep -o '"parameters_active": [0-9]*' | head -n 1
