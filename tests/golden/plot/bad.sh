# SPDX-License-Identifier: GPL-3.0-or-later
# Kinds that the data cannot give, outputs over inputs, options that do not fit.
try() {
    "$MEMSIM" plot "$@" 2>&1
    echo "$?"
}
"$MEMSIM" run tiny.json --json >run.json
cp run.json twin.svg
try
try nowhere.json
try run.json -o run.json
try run.json twin.svg -o ./twin.svg
try run.json -o figure.gif
try run.json -o nowhere/figure.svg
try run.json -o - --keep-script
try run.json run.json
try run.json --figure pie
try run.json --figure curve
try run.json twin.svg --figure gantt
try run.json --memory 8GiB
try run.json --x batch
try swept.csv --figure gantt
try swept.csv --figure bars
try swept.csv --figure pareto --y step
try swept.csv --x sequence
try swept.csv --x batch --series batch
try swept.csv swept.jsonl
try swept.csv --y pek
(PATH=/nowhere try swept.csv -o figure.svg)
mkdir folder.svg
try swept.csv -o folder.svg
ln -s /dev/full full.svg
try swept.csv -o full.svg
find . -name "*.svg" ! -name twin.svg -o -name "*.gp" | sort
