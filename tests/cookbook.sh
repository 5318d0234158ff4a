#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# What the READMEs show is what memsim says:
#
#   tests/cookbook.sh MEMSIM [FILE...]           runs the commands, compares
#   tests/cookbook.sh --bless MEMSIM [FILE...]   writes what they say
#
# A block that begins with ```console holds commands ("$ ", continued by \ and
# "> ") and what each prints on standard output and error.  Those of a file run
# in its order in one empty folder, in which tests/ is this folder.
set -eu
export LC_ALL=C
bless=
[ "$1" != --bless ] || { bless=1; shift; }
case $1 in
/*) memsim=$1 ;;
*) memsim=$PWD/$1 ;;
esac
shift
tests=$(cd "$(dirname "$0")" && pwd)
cd "${tests%/*}"
# shellcheck disable=SC2046 # names of ours
[ $# -gt 0 ] || set -- $(grep -l '^```console' README.md ./*/*.md ./*/*/*.md)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
mkdir "$scratch/bin"
ln -s "$memsim" "$scratch/bin/memsim"
export PATH="$scratch/bin:$PATH"

# FILE with each command's output as it is now, on standard output.
anew() {
    shown=
    command=
    while IFS= read -r line; do
        case $shown$line in
        '```console') shown=1 ;;
        '1```')
            [ -z "$command" ] || say
            shown=
            ;;
        '1$ '*)
            [ -z "$command" ] || say
            command=${line#??}
            printf '%s\n' "$line"
            continue
            ;;
        '1> '*)
            command="$command
${line#??}"
            printf '%s\n' "$line"
            continue
            ;;
        1*) continue ;; # what it said before
        esac
        printf '%s\n' "$line"
    done <"$1"
}

say() { # what the command prints
    (cd "$here" && env -i PATH="$PATH" HOME="$scratch" LC_ALL=C TERM=dumb \
        PYTHONPATH="${memsim%/*}/python" PYTHONDONTWRITEBYTECODE=1 \
        COLUMNS=80 sh -c "$command") 2>&1 </dev/null || true
    command=
}

status=0
for file in "$@"; do
    here=$scratch/here
    rm -rf "$here"
    mkdir "$here"
    ln -s "$tests" "$here/tests"
    anew "$file" >"$scratch/anew"
    if cmp -s "$file" "$scratch/anew"; then
        continue
    elif [ -n "$bless" ]; then
        cat "$scratch/anew" >"$file"
    else
        diff -u "$file" "$scratch/anew" >&2 || true
        status=1
    fi
done
[ $status = 0 ] || echo "cookbook.sh: if that is meant, run it with --bless" >&2
exit $status
