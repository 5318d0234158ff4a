# SPDX-License-Identifier: GPL-3.0-or-later
# plot and compare draw the same results alike, simulated or saved, one of them
# refused; the subtitle says what all have in common.
"$MEMSIM" run tiny16.json --batch 8 --json >a.json
for policy in microbatch:4 checkpoint:sqrt; do
    "$MEMSIM" run tiny16.json --batch 8 -p $policy --json
done >b.json
# shellcheck disable=SC2086 # words
compare() {
    "$MEMSIM" compare $three "$@"
}
three="tiny16.json --batch 8 -p none -p microbatch:4 -p microbatch:3"
compare --json >c.json
for kind in bars pareto timeline; do
    "$MEMSIM" compare a.json b.json -q --plot compared.svg --figure $kind \
        --keep-script
    "$MEMSIM" plot a.json b.json -q -o plotted.svg --figure $kind
    cmp compared.svg plotted.svg
    grep -o "'batch [^']*'\|'[^']*: tiny16[^']*'" compared.gp
    compare -q --plot live.svg --figure $kind \
        --keep-script
    "$MEMSIM" plot c.json -q -o saved.svg --figure $kind
    cmp live.svg saved.svg
    grep -o "'[^']*refused'" live.gp
done
"$MEMSIM" compare c.json --json | cmp - c.json
"$MEMSIM" compare c.json | sed -n '3,6p'
"$MEMSIM" plot c.json swept.csv -q -o both.svg --keep-script
grep -o "'c.json[^']*'" both.gp
