#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Formats every source file in place: section lines, no blank line within a
# function, then .clang-format.
set -eu
cd "$(dirname "$0")/.."
scratch=$(mktemp)
trap 'rm -f "$scratch"' EXIT
rule=$(printf '%080d' 0 | tr 0 -)
find sim graphs policies plots tools tests -name '*.[ch]' |
    while read -r file; do
        awk -v rule="$rule" '
            /^\/\* ---- .* -+ \*\/$/ {
                sub(/ -+ \*\/$/, "")
                $0 = $0 " " substr(rule, 1, 76 - length($0)) " */"
            }
            $0 == "{" { body = last !~ /\\$/ }
            /^}/ { body = 0 }
            { last = $0 }
            !body || $0 != ""' "$file" >"$scratch"
        cmp -s "$file" "$scratch" || cat "$scratch" >"$file"
        clang-format -i "$file"
    done
