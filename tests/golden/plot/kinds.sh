# SPDX-License-Identifier: GPL-3.0-or-later
# Every kind of figure from what run, compare and sweep save.
"$MEMSIM" run tiny16.json --json >none.json
"$MEMSIM" run tiny16.json -p checkpoint:full --json >full.json
"$MEMSIM" compare tiny16.json -p none -p checkpoint:sqrt --json >both.json
for kind in timeline gantt layers ranks; do
    "$MEMSIM" plot none.json --figure "$kind" -o "$kind.svg"
done
"$MEMSIM" plot none.json full.json -o bars.svg
"$MEMSIM" plot both.json full.json --figure pareto -o pareto.svg --keep-script
grep -c "trade-off: tiny16\|'none'\|'checkpoint:full'" pareto.gp
"$MEMSIM" plot swept.csv -o curve.svg --keep-script --memory 8GiB -q
grep -c "Peak device memory against batch\|'microbatch:4'\|gaps: no" curve.gp
"$MEMSIM" plot swept.csv --figure pareto -o rows.svg
"$MEMSIM" plot swept.jsonl --y step -o words.svg
cat none.json full.json | "$MEMSIM" plot - -o joined.svg
cmp bars.svg joined.svg
"$MEMSIM" plot none.json -o - | grep -c '</svg>'
grep -l '</svg>' ./*.svg
