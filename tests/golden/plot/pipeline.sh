# SPDX-License-Identifier: GPL-3.0-or-later
# The turns of a pipeline: of a run, of a saved result, of several.
set -- gpt2 --batch 4 -p microbatch:4+pipeline:2
"$MEMSIM" run "$@" --figure pipeline --plot run.svg --keep-script -q
"$MEMSIM" run "$@" --json >run.json
"$MEMSIM" plot run.json --figure pipeline --keep-script -o saved.svg -q
cmp run.gp saved.gp
# Two forwards before the first backward, on rank 0, and the numbers of cells.
sed -n '/^.cells0 <</,/^EOD/p' run.gp | sed -n '2,3p'
grep -c "^set label '[0-3]' at" run.gp
grep "memory" run.gp | sed 's/ at .*//'
"$MEMSIM" run gpt2 --batch 4 \
    -p microbatch:4+pipeline:2,schedule=zb-h1 --json >zb.json
"$MEMSIM" plot run.json zb.json --figure pipeline --label A --label B \
    --keep-script -o both.svg -q
"$MEMSIM" compare gpt2 --batch 4 -p microbatch:4+pipeline:2 \
    -p microbatch:4+pipeline:2,schedule=zb-h1 --label A --label B \
    --figure pipeline --plot both2.svg --keep-script -q
cmp both.gp both2.gp
grep -c '^\$' both.gp
grep -l '</svg>' ./*.svg
"$MEMSIM" run gpt2 --figure pipeline --plot none.svg -q 2>&1
"$MEMSIM" run gpt2 --json >none.json
"$MEMSIM" plot none.json --figure pipeline -o none.svg 2>&1
"$MEMSIM" plot none.json run.json --figure pipeline -o none.svg 2>&1
"$MEMSIM" compare gpt2 --grid batch=1,2,3,4,5 --figure pipeline \
    --plot x.svg 2>&1
for edit in 's/"backward", 0, 1/"sideways", 0, 1/' \
    's/"optimizer", 0, 0, 0, 0/"optimizer", 0, 0, 99999999999, 0/' \
    's/"micro_batch", "recompute_ns", "weight_ns"/"micro_batch"/'; do
    sed "$edit" run.json >edited.json
    "$MEMSIM" plot edited.json --figure pipeline -o none.svg 2>&1 |
        sed 's/^[^ ]*:[0-9]*:[0-9]*: //' | head -n 1
done
[ ! -e none.svg ]
