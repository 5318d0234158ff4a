#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The sweep of tools/README.md gives the same rows by itself, as a shell loop,
# with GNU parallel and as a Slurm job array; the man page shows the same:
#
#   tests/engines.sh MEMSIM
#
# Tools that are not installed (jq, parallel, Slurm) are named and left out.
set -eu
export LC_ALL=C
case $1 in
/*) memsim=$1 ;;
*) memsim=$PWD/$1 ;;
esac
tests=$(cd "$(dirname "$0")" && pwd)
root=${tests%/*}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
mkdir "$folder/bin"
ln -s "$memsim" "$folder/bin/memsim"
export PATH="$folder/bin:$PATH"
cd "$folder"

block() { # the indented lines behind the line that begins so
    awk -v begin="$1" '
        index($0, begin) == 1 { found = 1; next }
        found && /^    / { print substr($0, 5); some = 1; next }
        some { exit }' "$root/tools/README.md"
}

fail() {
    echo "engines.sh: $*" >&2
    exit 1
}

has() {
    command -v "$1" >/dev/null || { echo "engines.sh: no $1, left out"; false; }
}

# The man page has each line of the block.
sed 's/\\e/\\/g' "$root/tools/cli/help/memsim.1.in" >page
shown() {
    grep -v '^ *$' "$1" | while read -r line; do
        grep -qF -- "$line" page || fail "memsim.1 does not show: $line"
    done
}

block 'Thousands of points' >whole.sh
block 'The same points as a plain shell loop' >loop.sh
block 'With GNU parallel' >parallel.sh
block 'As a Slurm job array' >sweep.sh
block 'A task that was cut off' >join.sh
for script in whole loop parallel sweep join; do
    [ -s $script.sh ] || fail "tools/README.md shows no $script"
    shown $script.sh
done

sh whole.sh
mv sweep.csv whole.csv
[ "$(wc -l <whole.csv)" = 43 ] || fail "the sweep has not 42 rows"

if has jq; then
    sh loop.sh | tr -d '"' >loop.csv
    sed 's/ -o sweep.csv/ --json/' whole.sh | sh | jq -r \
        '[.["training.batch"], .["training.sequence"], .policy, .status,
          .peak_allocated_bytes, .fits_exact, .step_ns] | @csv' | tr -d '"' |
        cmp - loop.csv || fail "the loop has other rows"
fi
if has parallel; then
    sh parallel.sh
    cmp sweep.csv whole.csv || fail "GNU parallel has other rows"
    rm sweep.csv
fi
if has sbatch; then
    status=0
    sh "$tests/slurm.sh" sbatch --wait --array=1-8 sweep.sh >slurm.log ||
        status=$?
    if [ $status = 77 ]; then
        echo "engines.sh: not root, Slurm left out"
    else
        [ $status = 0 ] || { cat slurm* >&2; fail "Slurm failed"; }
        sh join.sh
        cmp sweep.csv whole.csv || fail "Slurm has other rows"
    fi
fi
MEMSIM=$memsim sh "$root/tools/pareto.sh" gpt2 8 .
grep -q '</svg>' gpt2-pareto.svg || fail "tools/pareto.sh drew no figure"
echo "engines.sh: same rows from all"
