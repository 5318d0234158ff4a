# SPDX-License-Identifier: GPL-3.0-or-later
{
    printf '{"memsim": 1, "input": {"shape": [8]}, "layers": [\n'
    printf '{"type": "linear", "name": "a", "out": 8},\n'
    printf '{"type": "add", "inputs": ["a"'
    head -c 1000000 /dev/zero | sed 's/\x0/, "a"/g'
    printf ']}, {"type": "cross_entropy"}]}\n'
} >edges.json
exec "$MEMSIM" run edges.json
