# SPDX-License-Identifier: GPL-3.0-or-later
# Lines over time: of runs, of results, of both; not of many.
"$MEMSIM" run tiny.json --batch 8 --json >a.json
"$MEMSIM" compare a.json tiny.json -p checkpoint:full -p microbatch:3 \
    --batch 8 -q --plot both.svg --figure timeline --keep-script
echo "$?"
# shellcheck disable=SC2016 # gnuplot's names
grep -c '^\$l[0-9] ' both.gp
grep -o '1 of 3 variants refused' both.gp
"$MEMSIM" compare tiny.json --batch 8 -p none -p checkpoint:full -q \
    --plot live.svg --figure timeline
"$MEMSIM" run tiny.json --batch 8 -p checkpoint:full --json >b.json
"$MEMSIM" compare a.json b.json -q --plot saved.svg --figure timeline
cmp live.svg saved.svg && echo same picture
"$MEMSIM" compare tiny.json --grid batch=1..5 -q --plot five.svg \
    --figure timeline
echo "$?"
sed 's/"timeline"/"line"/' a.json >old.json
"$MEMSIM" compare a.json old.json -q --plot old.svg --figure timeline
echo "$?"
"$MEMSIM" compare parameters.json --grid batch=1,2 -q \
    --plot none.svg --figure timeline
echo "$?"
ls ./*.svg
