# SPDX-License-Identifier: GPL-3.0-or-later
# A hostile name reaches the Gantt chart and the trace as text.
for ending in svg png pdf; do
    "$MEMSIM" run names.json -q -p swap:save_on_cpu --figure gantt \
        --plot="a'b;\$(touch pwned).$ending" --trace trace.json
    echo "$?"
done
ls a* trace.json pwned* 2>/dev/null
grep -c 'touch pwned' trace.json
