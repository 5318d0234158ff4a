# SPDX-License-Identifier: GPL-3.0-or-later
# An op graph as it is, and with parameters that get no gradient.
"$MEMSIM" run ops.json --json -p checkpoint:full |
    grep -o '"model_states": {[^}]*}\|"recomputed_ops": [0-9]*' | sort -u
sed 's/\[10, 4, "act", ""\]/&, [11, 400, "param", "unused"]/' ops.json \
    >unused.json
"$MEMSIM" run unused.json --json |
    grep -o '"model_states": {[^}]*}\|"recomputed_ops": [0-9]*' | sort -u
"$MEMSIM" inspect ops.json
