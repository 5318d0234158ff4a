# SPDX-License-Identifier: GPL-3.0-or-later
# The same for scripts, and what does not go with it.
"$MEMSIM" compare tiny.json --batch 8 --checkpoint-all --json >front.json
tr '{' '\n' <front.json | sed -n '1,4p; /"curve": true/p' | head -n 8
"$MEMSIM" compare tiny.json --batch 8 --checkpoint-all --csv - |
    cut -d, -f1,3,4,7,8 | head -n 6
"$MEMSIM" compare tiny.json --batch 8 --checkpoint-all -q --plot front.svg \
    --keep-script
echo "$?"
# shellcheck disable=SC2016 # gnuplot's names
grep -c '^\$' front.gp
grep -o 'line: the best plans[^"]*' front.gp | head -n 1
for more in '-p checkpoint:full' '--grid batch=1,2' '--allocator torch' \
    '--figure bars' '--explain' '--budget 0' '--budget 12' 'tiny.json' \
    '--budget 40G'; do
    # shellcheck disable=SC2086 # words
    "$MEMSIM" compare tiny.json --checkpoint-all $more -q 2>&1
    echo "status $?"
done
"$MEMSIM" compare tiny.json -p none -p checkpoint:full --budget 1GiB 2>&1
"$MEMSIM" compare tiny.json -p none -p checkpoint:full -q --figure front \
    --plot x.svg 2>&1
"$MEMSIM" compare gpt2 --batch 8 -p pipeline:2 -p microbatch:4 \
    --checkpoint-all 2>&1 | sed -n '/^left out/,$p'
