#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Holds whole recorded GPU steps, each allocation and each free, against memsim
# (tests/truth/gpu_steps.py):
#
#   tests/gpu.sh [MEMSIM]       default: build/debug/memsim
#
# 77: python3-torch is not installed, or there are no traces.
set -eu
export LC_ALL=C PYTHONDONTWRITEBYTECODE=1
here=$(cd "$(dirname "$0")" && pwd)
memsim=${1-$here/../build/debug/memsim}
truth=${MEMSIM_TRUTH-$here/../../shared/truth}/gpu
python=/usr/bin/python3

if ! "$python" -c 'import torch' 2>/dev/null; then
    echo "gpu.sh: skipped, python3-torch is not installed" >&2
    exit 77
fi
if ! [ -r "$truth/truth.json" ]; then
    echo "gpu.sh: skipped, there are no traces in $truth" >&2
    exit 77
fi
exec "$python" "$here/truth/gpu_steps.py" "$memsim" "$truth"
