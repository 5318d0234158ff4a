#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Holds the JSON Schemas that memsim prints against what it reads and prints:
#
#   tests/schema.sh MEMSIM     exit 77: python3-jsonschema is not installed
set -eu
export LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
here=$(cd "$(dirname "$0")" && pwd)
python=/usr/bin/python3

if ! "$python" -c 'import jsonschema' 2>/dev/null; then
    echo "schema.sh: skipped, python3-jsonschema is not installed" >&2
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" "$here/schema.py" "$(realpath "$1")" "$(dirname "$here")" "$folder"
