# SPDX-License-Identifier: GPL-3.0-or-later
# The thin line of the step without policies on what waits for backward: named
# with its peak and its time, drawn alike from a saved result, and where no such
# policy is, or it changes nothing, not there.
for policy in checkpoint:sqrt checkpoint:full swap:te=2 swap:save_on_cpu \
    swap:vdnn=all fsdp:dp=2+checkpoint:full \
    zero:2,dp=2+microbatch:2+checkpoint:full \
    none checkpoint:none zero:3,dp=2; do
    "$MEMSIM" run tiny16.json --batch 4 -p "$policy" -q --plot=run.svg \
        --keep-script
    echo "== $policy"
    grep -o "'without [^']*'" run.gp
    grep -c 'without using' run.gp
    "$MEMSIM" run tiny16.json --batch 4 -p "$policy" --json >run.json
    "$MEMSIM" plot run.json -q -o plot.svg
    cmp run.svg plot.svg
    "$MEMSIM" compare tiny16.json --batch 4 -p "$policy" -p microbatch:4 \
        --json >both.json
    grep -o '"without": {"policy": "[^"]*"' run.json both.json
done
echo "== other figures have none"
"$MEMSIM" run tiny16.json --batch 4 -p checkpoint:full -q --figure gantt \
    --plot=gantt.svg --keep-script
grep -c without gantt.gp
echo "== far above the axis"
"$MEMSIM" run resnet50 --batch 512 -p swap:save_on_cpu -q --plot=far.svg \
    --keep-script
grep -o "'without [^']*'" far.gp
