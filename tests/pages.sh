#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The laws of pages: what memsim report writes is what memsim run says, to the
# byte, and no name becomes more than a text.  tests/browser.sh opens them.
#
#   tests/pages.sh MEMSIM     exit 77: python3 is missing
set -u
if ! command -v python3 >/dev/null; then
    echo "pages.sh: skipped, python3 is missing" >&2
    exit 77
fi
exec python3 "$(dirname "$0")/pages.py" "$(realpath "$1")"
