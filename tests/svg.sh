#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The law of names: whatever a model, a layer or a block is called, figures are
# XML that a parser accepts.
#
#   tests/svg.sh MEMSIM     exit 77: gnuplot or python3 is missing
set -u
for program in gnuplot python3; do
    command -v $program >/dev/null && continue
    echo "svg.sh: skipped, $program is missing" >&2
    exit 77
done
exec python3 "$(dirname "$0")/svg.py" "$(realpath "$1")"
