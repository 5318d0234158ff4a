# SPDX-License-Identifier: GPL-3.0-or-later
# Parameters with and without the head and embeddings, tied and not, active;
# FLOPs and MACs both ways; bytes: the table, all of its columns, CSV, JSON.
for model in gpt2 mixtral-8x7b resnet50; do
    "$MEMSIM" inspect $model | sed -n 3,4p
done
"$MEMSIM" inspect moe.json --wide
"$MEMSIM" inspect moe.json --csv - >rows.csv
head -n 3 rows.csv
"$MEMSIM" inspect moe.json --csv same.csv --json >moe.json.out
cmp rows.csv same.csv && echo same
# Layers sum to the totals, in rows as in the object.
awk -F, 'NR == 1 { split($0, key, ",") } NR > 1 { for (i = 3; i <= NF; i++)
        sum[i] += $i } END { for (i = 3; i in sum; i++)
        printf "\"%s\": %.0f\n", key[i], sum[i] }' rows.csv |
    while read -r total; do grep -cF "$total" moe.json.out; done | sort -u
# No row is wider than a screen.
for model in gpt2 mixtral-8x7b resnet50; do
    "$MEMSIM" inspect $model --all | sed '1d; s/…/./g' | awk 'length > 80'
done
"$MEMSIM" inspect gpt2 --csv - --json
echo "status $?"
"$MEMSIM" inspect tiny.json --csv tiny.json
echo "status $?"
