#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# What memsim prints on a terminal of 50, 80, 120 and 200 columns fits it
# (widths.py):
#
#   tests/widths.sh PROGRAM
#
# exit 77: there is no Python to have a terminal by
set -eu
export LC_ALL=C.UTF-8
command -v python3 >/dev/null || exit 77
tests=$(cd "$(dirname "$0")" && pwd)
case $1 in
/*) memsim=$1 ;;
*) memsim=$PWD/$1 ;;
esac
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
PYTHONDONTWRITEBYTECODE=1 python3 "$tests/widths.py" "$memsim" "$tests"
