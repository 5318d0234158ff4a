# SPDX-License-Identifier: GPL-3.0-or-later
# Ranks divide the experts of a layer: what a rank has, which groups meet, and
# what is refused.
"$MEMSIM" run mixtral-8x7b --policy expert:8+zero:1 --gpus 16
"$MEMSIM" run mixtral-8x7b -p tensor:2,sp+expert:4+fsdp:dp=8 --json >out
sed -nE 's/.*("groups": \{[^}]*\}).*/\1/p' out
"$MEMSIM" run mixtral-8x7b -p expert:8,imbalance=1.5+zero:1 --gpus 16 |
    grep -A 1 '^experts'
loads=3/1/1/1/1/1/1/1 # of each expert: the first rank has 1.6 times the average
"$MEMSIM" run mixtral-8x7b -p "expert:4,imbalance=$loads+zero:2" --gpus 8 \
    --json |
    grep -o '"average_rank": [^}]*}'
printf '# rows of each expert\n3 1 1,1\n1/1\n1 1 # the last two\n' >loads.txt
"$MEMSIM" run mixtral-8x7b -p "expert:4,imbalance=@loads.txt+zero:2" --gpus 8 \
    --json |
    grep -o '"average_rank": [^}]*}'
printf '6 2 0 0 0 0 0 0\n' >few.txt
"$MEMSIM" run mixtral-8x7b -p expert:4,imbalance=@few.txt | grep -A 1 '^policy'
"$MEMSIM" run deepseek-v3 -p expert:16,dispatch=deepep+fsdp:dp=32 \
    --set model.layers=5 --set model.aux_loss=0.01 |
    grep -A 3 '^policy\|^device\|between groups'
refuse() {
    echo "memsim run $*"
    "$MEMSIM" run "$@" 2>&1 && echo "it ran"
}
refuse mixtral-8x7b -p expert:3
refuse mixtral-8x7b -p expert:16
refuse mixtral-8x7b -p expert:8+zero:1 --gpus 12
refuse mixtral-8x7b -p tensor:2+expert:4
refuse mixtral-8x7b -p tensor:2,sp+expert:4,etp=4
refuse mixtral-8x7b -p expert:4,imbalance=1/2/3
refuse mixtral-8x7b -p expert:4,imbalance=0.5
printf '1 2\n3 four\n' >words.txt
printf '# none\n' >empty.txt
refuse mixtral-8x7b -p expert:4,imbalance=@words.txt
refuse mixtral-8x7b -p expert:4,imbalance=@empty.txt
refuse mixtral-8x7b -p expert:4,imbalance=@missing.txt
refuse mixtral-8x7b -p expert:4,imbalance=0/0/0/0/0/0/0/0
refuse mixtral-8x7b -p expert:4,imbalance=0
refuse mixtral-8x7b -p expert:4,capacity=much
refuse mixtral-8x7b -p expert:4+deepspeed:2,dp=4
refuse deepseek-v3 -p expert:4,dispatch=deepep+tensor:2,sp
refuse deepseek-v3 -p expert:256,dispatch=deepep
refuse llama-3-8b -p expert:2
true
