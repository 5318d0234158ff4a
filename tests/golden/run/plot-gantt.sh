# SPDX-License-Identifier: GPL-3.0-or-later
# The streams of a step under its memory, whatever it uses of them.
for policy in none zero:3,dp=8 ddp:dp=8 swap:te=3 swap:vdnn=all swap:save_on_cpu
do
    echo "== $policy"
    "$MEMSIM" run gpt2 -q -p "$policy" --figure gantt --plot=a.svg --keep-script
    sed -n "s/^\(\$[a-z0-9_]*\) << EOD\$/\1/p" a.gp
    grep -o "^set label '\(wait\|copies\|collectives\)[^']*" a.gp
    tail -c 7 a.svg
done
# The summary says how to see the streams.
"$MEMSIM" run gpt2 -p zero:3,dp=8 --plot=a.svg 2>/dev/null | grep ^next
"$MEMSIM" run gpt2 --set optimizer_impl=fused --plot=a.svg 2>/dev/null |
    grep ^next
