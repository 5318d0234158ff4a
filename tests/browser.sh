#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Pages in a browser: they load without a fault, the pointer and the keys say
# the tensor that the data has there, zoom, the dark, paper, hostile names.
#
#   tests/browser.sh MEMSIM     exit 77: python3 or the browser is missing
set -u
for program in python3 chromium-headless-shell; do
    command -v $program >/dev/null && continue
    echo "browser.sh: skipped, $program is missing" >&2
    exit 77
done
exec python3 "$(dirname "$0")/browser.py" "$(realpath "$1")"
