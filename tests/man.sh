#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The man page names every command and option that the program's help names,
# and no other:
#
#   tests/man.sh PROGRAM
set -eu
export LC_ALL=C
memsim=$1
page=$(cd "$(dirname "$0")/.." && pwd)/tools/memsim.1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$memsim" help |
    sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' >"$folder/commands"
while read -r command; do
    grep -q "^\.It Cm $command\$" "$page" || {
        echo "man.sh: memsim.1 lacks the command $command" >&2
        exit 1
    }
    "$memsim" "$command" --help | grep '^ .*--' |
        grep -o -- '^ *\(-[a-z], \)\{0,1\}--[a-z-]*' | sed 's/.*--//'
done <"$folder/commands" | sort -u >"$folder/told"
[ -s "$folder/told" ]
grep -o 'Fl -[a-z-]*' "$page" | sed 's/Fl -//' | grep -v '^version$' |
    sort -u >"$folder/paged"
diff -u "$folder/told" "$folder/paged" >&2 || {
    echo "man.sh: options of the help (-) and of memsim.1 (+) differ" >&2
    exit 1
}
