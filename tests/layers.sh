#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Measures every layer type of tests/layers.py under Debian's torch 1.13 and
# compares with the table that truth.layers holds memsim against:
#
#   tests/layers.sh          exit 77: python3-torch is not installed
set -eu
export LC_ALL=C PYTHONDONTWRITEBYTECODE=1
here=$(cd "$(dirname "$0")" && pwd)
python=/usr/bin/python3

if ! "$python" -c 'import torch' 2>/dev/null; then
    echo "layers.sh: skipped, python3-torch is not installed" >&2
    exit 77
fi
table=$(mktemp)
trap 'rm -f "$table"' EXIT
"$python" -W ignore "$here/layers.py" >"$table" 2>/dev/null
diff "$here/truth/layers.tsv" "$table" || {
    echo "layers.sh: torch does otherwise than truth/layers.tsv says" >&2
    exit 1
}
