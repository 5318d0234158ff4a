#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The policy of policies/README.md: its text is the file's, its commands work in
# a source tree and against an installed memsim, its results obey laws; and the
# program exports every function that a plugin may call.
#
#   tests/plugin.sh SOURCE BUILD
set -eu
export LC_ALL=C
source=$1
build=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
opened() { # a header, and what it includes
    echo "$1"
    sed -n 's/^#include "\(sim.*\)"/\1/p' "$source/$1" |
        while read -r header; do
            [ "$header" = sim/sim.h ] || opened "$header"
        done
}
headers="$(opened sim/sim.h | sort -u)
    policies/policies.h policies/common/policy.h
    policies/common/saved.h policies/share/sharedstates.h
    policies/checkpoint/cuts.h"

fail() {
    echo "plugin.sh: $*" >&2
    exit 1
}

# ---- policies/README.md and tests/plugin/stripe.c are the same text

sed -n '/^    #include "policies\//,/^    const ms_plugin /p' \
    "$source/policies/README.md" | sed 's/^    //' >"$scratch/readme.c"
sed 1d "$source/tests/plugin/stripe.c" |
    diff -u - "$scratch/readme.c" >&2 ||
    fail "policies/README.md has another text"

# ---- every function of the headers is exported

nm -D --defined-only "$build/memsim" | sed 's/.* //' >"$scratch/exported"
for header in $headers; do
    sed -nE 's/^[a-z].*[ *](ms_[a-z0-9_]+)\(.*/\1/p' "$source/$header"
done | grep -v '^ms_fail_at_$' >"$scratch/called"
[ "$(wc -l <"$scratch/called")" -gt 50 ] || fail "which functions are there?"
while read -r name; do
    grep -qx "$name" "$scratch/exported" || fail "memsim lacks $name"
done <"$scratch/called"

# ---- the README's command: a source tree, then an installed memsim

cd "$scratch"
ln -s "$source/sim" "$source/policies" "$source/tests" .
command=$(sed -n 's/^    \(cc .*stripe\.so\)$/\1/p' \
    "$source/policies/README.md")
$command || fail "$command"
cmake --install "$build" --prefix "$scratch/installed" >install.log ||
    fail "cannot install"
memsim=$scratch/installed/bin/memsim
example=$(find installed/share -name stripe.c)
cc -std=c17 -shared -fPIC -I installed/include/memsim "$example" -o other.so ||
    fail "the installed headers do not compile"

set -- run gpt2 --batch 8 --json -p stripe:every=2
"$memsim" "$@" --plugin ./stripe.so >here.json
"$memsim" "$@" --plugin ./other.so | diff here.json - >&2 ||
    fail "the installed headers give another result"

# ---- laws: one block of one is checkpoint:full, to the last row

run() {
    "$build/memsim" run gpt2 --batch 8 --plugin ./stripe.so "$@"
}
run -p checkpoint:full --dump plan >full.txt
run -p stripe:every=1 --dump plan | cmp - full.txt ||
    fail "stripe:every=1 is not checkpoint:full"

# What comes back is what left.  Of GPT-2's 12 blocks those that are not redone
# send what they save; one whose neighbour before it is not redone either sends
# its input, too: two cases give the two sizes, the others must agree.
sent() {
    run -p "stripe:every=$1" --json |
        sed -nE 's/.*"h2d_bytes": ([0-9]+), "d2h_bytes": ([0-9]+).*/\1 \2/p' |
        head -n 1
}
for n in 2 3 4 6 12; do
    # shellcheck disable=SC2046 # two numbers
    set -- $(sent $n)
    [ "$1" -gt 0 ] || fail "every=$n: nothing moved"
    [ "$1" = "$2" ] || fail "every=$n: $1 bytes in, $2 out"
    away=$((12 - 12 / n))
    inner=$((away - 12 / n))
    [ $n != 2 ] || block=$(($1 / away))
    [ $n != 3 ] || input=$((($1 - away * block) / inner))
    [ $n = 2 ] || [ "$1" = $((away * block + inner * input)) ] ||
        fail "every=$n: $1 bytes"
done
# 16-bit hidden states of 8 x 1024 tokens, 768 wide
[ "$input" = $((8 * 1024 * 768 * 2)) ] || fail "an input of $input bytes"
