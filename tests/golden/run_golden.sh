#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs the command line and compares every byte.
#
#   run_golden.sh [--bless] MEMSIM [NAME]...      (no NAME: all cases)
#
# NAME is a path below tests/golden, COMMAND/CASE, or a folder of cases.  A
# case is NAME.args (shell words; # comments) or NAME.sh (a script that runs
# "$MEMSIM"), with what is expected of it: NAME.out, NAME.err (absent: empty),
# NAME.exit (absent: 0) and NAME.file.PATH for a file it writes.  NAME.in is
# its standard input.  Where the whole output is not the point, lines "# keep:
# LIST" of NAME.args, or tests/golden/keep in a pipe of NAME.sh, select lines of
# a summary or keys of JSON.  It runs in a scratch folder that holds a copy of
# tests/golden/files.  --bless writes down what came out instead; a
# NAME.file.PATH must exist (empty will do) to be blessed.
set -u
cd "$(dirname "$0")" || exit 2
golden=$PWD
bless=0
if [ "${1-}" = --bless ]; then
    bless=1
    shift
fi
[ $# -ge 1 ] || { sed -n '3,5p' "$0" >&2; exit 2; }
case $1 in
/*) MEMSIM=$1 ;;
*) MEMSIM=$OLDPWD/$1 ;;
esac
shift
[ -x "$MEMSIM" ] || { echo "$MEMSIM: no such program" >&2; exit 2; }
scratch=$(mktemp -d) || exit 2
echo 0 >"$scratch/zero"
trap 'chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

run_case() { # name -> out, err and exit in $scratch, files in $scratch/work
    rm -rf "$scratch/work"
    mkdir "$scratch/work"
    [ -d files ] && cp -R files/. "$scratch/work"
    input=/dev/null
    [ -f "$1.in" ] && input=$golden/$1.in
    (
        cd "$scratch/work" || exit 2
        if [ -f "$golden/$1.sh" ]; then
            set -- sh "$golden/$1.sh"
        else
            set -f
            eval "set -- $(grep -v '^#' "$golden/$1.args" | tr '\n' ' ')"
            set -- "$MEMSIM" "$@"
        fi
        env -i PATH="$golden:$PATH" HOME="$scratch" LC_ALL=C TERM=dumb \
            COLUMNS=80 MEMSIM="$MEMSIM" "$@" \
            <"$input" >"$scratch/out" 2>"$scratch/err"
    )
    echo $? >"$scratch/exit"
    [ -f "$1.args" ] || return 0
    list=$(sed -n 's/^# keep: *//p' "$1.args" | paste -s -d , -)
    [ -n "$list" ] || return 0
    mv "$scratch/out" "$scratch/whole"
    ./keep "$list" <"$scratch/whole" >"$scratch/out"
}

compare() { # a name for the expected file, expected, got
    cmp -s "$2" "$3" && return
    LC_ALL=C awk -v name="tests/golden/$1" 'BEGIN {
        do {
            line++
            left = (getline expected <ARGV[1]) > 0
            right = (getline got <ARGV[2]) > 0
        } while (left && right && expected "" == got "")
        print name ":" line ": the first difference"
        print "    expected: " (left ? expected : "the end of the file")
        print "    got:      " (right ? got : "the end of the file")
    }' "$2" "$3"
    diff -au "$2" "$3" | sed '1,2d; 60q'
    return 1
}

check_file() { # expected, got, what stands for an absent expected file
    if [ $bless = 1 ]; then
        if cmp -s "$2" "$3"; then rm -f "$1"; else cp "$2" "$1"; fi
    elif [ -f "$1" ]; then
        compare "$1" "$1" "$2"
    else
        compare "$1" "$3" "$2"
    fi
}

check_case() {
    run_case "$1"
    wrong=0
    check_file "$1.exit" "$scratch/exit" "$scratch/zero" || wrong=1
    check_file "$1.err" "$scratch/err" /dev/null || wrong=1
    check_file "$1.out" "$scratch/out" /dev/null || wrong=1
    for expected in "$1".file.*; do
        [ -e "$expected" ] || continue
        got=$scratch/work/${expected#"$1".file.}
        if [ $bless = 1 ]; then cp "$got" "$expected"; else
            compare "$expected" "$expected" "$got" || wrong=1
        fi
    done
    [ $wrong = 0 ] || echo "FAILED: $1"
    return $wrong
}

cases() { # NAME... -> the cases that they are, or that lie below them
    for name; do
        if [ -f "$name.args" ] || [ -f "$name.sh" ]; then
            echo "$name"
        elif [ -d "$name" ]; then
            find "$name" -name '*.args' -o -name '*.sh' |
                sed 's,^\./,,; /^run_golden.sh$/d; s/\.[a-z]*$//' | sort
        else
            echo "$name: no such case" >&2
            exit 2
        fi
    done
}
[ $# -gt 0 ] || set -- .
names=$(cases "$@") || exit 2
failed=0
total=0
for name in $names; do
    total=$((total + 1))
    check_case "$name" || failed=$((failed + 1))
done
echo "$total golden cases, $failed failed"
[ $failed = 0 ]
