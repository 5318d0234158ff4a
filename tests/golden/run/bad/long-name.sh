# SPDX-License-Identifier: GPL-3.0-or-later
{
    printf '{"memsim": 1, "input": {"shape": [4]}, "layers": [{"type": "'
    head -c 1000000 /dev/zero | tr '\0' a
    printf '"}]}\n'
} >long.json
exec "$MEMSIM" run long.json
