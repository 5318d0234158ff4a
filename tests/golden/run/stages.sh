# SPDX-License-Identifier: GPL-3.0-or-later
# The stages of a pipeline, what would even them out, and one told by itself.
spec=microbatch:4+pipeline:3
set -- gpt2 --batch 4 -p "$spec"
"$MEMSIM" run "$@" | sed -n '/^stages/,/^at peak/p'
"$MEMSIM" run gpt2 --batch 4 -p microbatch:4+pipeline:2,chunks=6 --memory 2GiB |
    sed -n '/over:/p'
"$MEMSIM" run "$@" --rank 1 | sed -n '/^memory/p; /^peak/,/^stages/p'
"$MEMSIM" run "$@" --rank 1 --json >middle.json
sed 's/, "category_peaks.*//; s/.*"peak": //; s/"error_percent.*//' middle.json
"$MEMSIM" explain "$@" --rank 0 --top 2 | sed -n '/^at/,/^alive/p'
"$MEMSIM" run "$@" --rank 1 --plot run.svg --keep-script -q
"$MEMSIM" plot middle.json --keep-script -o saved.svg -q && cmp run.gp saved.gp
"$MEMSIM" run "$@" --json >run.json
"$MEMSIM" plot run.json --rank 1 --keep-script -o saved.svg -q &&
    cmp run.gp saved.gp
for rank in 3 -1 one; do
    "$MEMSIM" run "$@" --rank "$rank" 2>&1
done
"$MEMSIM" run gpt2 --rank 1 2>&1
"$MEMSIM" plot run.json --rank 7 2>&1
"$MEMSIM" plot run.json --rank 1 --figure layers 2>&1
"$MEMSIM" plot run.json middle.json --rank 1 2>&1
for first in 1/2 1/2/3/4 1/x/1 9 4/0/5; do
    "$MEMSIM" run gpt2 --batch 4 -p "$spec+checkpoint:first=$first" 2>&1
done
"$MEMSIM" run gpt2 -p checkpoint:first=1/2 2>&1
