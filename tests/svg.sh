#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The law of names: whatever a model, a layer or a block is called, figures are
# XML that a parser accepts.
#
#   tests/svg.sh MEMSIM     exit 77: gnuplot or python3 is missing
set -u
command -v gnuplot >/dev/null && command -v python3 >/dev/null || {
    echo "svg.sh: skipped, gnuplot or python3 is missing" >&2
    exit 77
}
exec python3 "$(dirname "$0")/svg.py" "$(realpath "$1")"
