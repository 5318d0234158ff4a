# SPDX-License-Identifier: GPL-3.0-or-later
# The trace alone on standard output, into a pipe that closes early, too.
"$MEMSIM" run mlp.json -p swap:save_on_cpu,min=1 --trace - >trace.json
echo "$?"
head -n 10 trace.json
for kind in M i X C; do
    echo "$kind $(grep -c "\"ph\":\"$kind\"" trace.json)"
done
tail -n 2 trace.json
"$MEMSIM" run mlp.json --trace - | head -c 20
