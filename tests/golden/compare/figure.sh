# SPDX-License-Identifier: GPL-3.0-or-later
# Figures come last, data without gnuplot; a variant that is refused is told.
for kind in bars pareto; do
    "$MEMSIM" compare tiny.json --batch 8 -p none -p checkpoint:full \
        -p microbatch:3 -q --plot $kind.svg --figure $kind --keep-script
    echo "$?"
    grep -o "refused" $kind.gp | sort -u
    grep -c "</svg>" $kind.svg
done
"$MEMSIM" compare tiny.json -p none -p checkpoint:full --plot >/dev/null
mkdir bin
PATH=$PWD/bin "$MEMSIM" compare tiny.json -p none -p checkpoint:full \
    --csv out.csv --plot figure.png >/dev/null
echo "$?"
find . -name "figure*" -o -name out.csv -o -name memsim.svg | sort
