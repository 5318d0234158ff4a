#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The man page, which is made from a template and the program's tables, names
# every command and option that the program's help names, and no other; it names
# the words that options take, topics, policies with their parameters, schemas
# and exit statuses, too; it has the example of each policy as a line to type,
# and man shows it without a complaint:
#
#   tests/man.sh PROGRAM PAGE
set -eu
export LC_ALL=C
memsim=$1
page=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$memsim" help |
    sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' >"$folder/commands"
while read -r command; do
    grep -q "^\.It Cm $command [AO]" "$page" || {
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

# ---- words

named() { # what; its words on standard input
    tr ' ' '\n' | sort -u >"$folder/words"
    [ -s "$folder/words" ] || {
        echo "man.sh: which words has $1?" >&2
        exit 1
    }
    while read -r word; do
        grep -qw -e "$word" "$page" || {
            echo "man.sh: memsim.1 lacks \"$word\" ($1)" >&2
            exit 1
        }
    done <"$folder/words"
}
words() { # what could stand for the last word, without files
    "$memsim" completion words -- "$@" | sed '/^:files/d'
}

while read -r command; do
    for option in $("$memsim" help "$command" |
        sed -n 's/^  .*\(--[a-z-]*\) [A-Z].*/\1/p'); do
        "$memsim" completion words -- "$command" "$option" '' >"$folder/values"
        # Words of the option's own have no description.
        if [ -s "$folder/values" ] &&
            [ -z "$(cut -s -f 2- "$folder/values")" ]; then
            named "$command $option" <"$folder/values"
        fi
    done
done <"$folder/commands"
"$memsim" help | sed -n -e '/^Topics/,/^$/s/^  \([a-z]*\) .*/\1/p' \
    -e '/^Questions/,/^$/s/^  \([a-z-]*\) .*/\1/p' | named help
words run -p '' | cut -f 1 | tr -d : | named --policy
for policy in $(words run -p '' | cut -f 1 | tr -d :); do
    "$memsim" help "$policy" | sed -n "s/^  \([a-z_][a-z_]*\)[= ].*/\1/p" |
        grep -v '^example$' >"$folder/params" || continue # none
    named "policy $policy" <"$folder/params"
    "$memsim" help "$policy" | sed -n 's/^  example: --policy //p' |
        while read -r example; do
            grep -qF -- "$example" "$page" || {
                echo "man.sh: memsim.1 lacks the example $example" >&2
                exit 1
            }
        done
done
words schema '' | cut -f 1 | named schema
words completion '' | named completion

"$memsim" help exit | awk '{ print $1 }' >"$folder/told"
sed -n '/^\.Sh EXIT/,/^\.El/s/^\.It \([0-9]*\)$/\1/p' "$page" |
    diff -u "$folder/told" - >&2 || {
    echo "man.sh: exit statuses of the help (-) and of memsim.1 (+) differ" >&2
    exit 1
}

if command -v groff >/dev/null; then
    groff -mdoc -Tutf8 -ww "$page" 2>"$folder/complaints" >/dev/null
    if [ -s "$folder/complaints" ]; then
        cat "$folder/complaints" >&2
        exit 1
    fi
fi
