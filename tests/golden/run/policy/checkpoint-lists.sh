# SPDX-License-Identifier: GPL-3.0-or-later
# What cannot be is refused: where, what, what to try.
for policy in layers=12 layers=5-3 each=13 each=2/3 nested=2/4 nested=13 \
    save=aten.adm recompute=nothing modules=moe full,micro_batches=1 \
    first=2,partial=1,micro_batches=0 chen,budget=1GiB \
    chen,budget=1GiB+pipeline:2 nested=7+pipeline:2 \
    knapsack,budget=1GiB+pipeline:2 optimal,budget=1GiB+pipeline:2 \
    optimal+pipeline:2 each=2,last=open chen,parts=3; do
    "$MEMSIM" run gpt2 --quiet -p "checkpoint:$policy" 2>&1
    echo "status $?"
done
