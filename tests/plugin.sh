#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The policies of tests/plugin: the text of one is that of policies/README.md,
# whose commands work in a source tree and against an installed memsim; their
# results obey laws; and the program exports every function of plugin.h.
#
#   tests/plugin.sh SOURCE BUILD
set -eu
export LC_ALL=C
source=$1
build=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() {
    echo "plugin.sh: $*" >&2
    exit 1
}

# ---- policies/README.md and tests/plugin/stripe.c are the same text

sed -n '/^    #include "policies\/plugin.h"/,/\.place = place};$/p' \
    "$source/policies/README.md" | sed 's/^    //' >"$scratch/readme.c"
sed 1d "$source/tests/plugin/stripe.c" |
    diff -u - "$scratch/readme.c" >&2 ||
    fail "policies/README.md has another text"

# ---- every function of the header is exported

nm -D --defined-only "$build/memsim" | sed 's/.* //' >"$scratch/exported"
sed -nE 's/^[a-z].*[ *](ms_plugin(view)?_[a-z0-9_]+)\(.*/\1/p' \
    "$source/policies/plugin.h" >"$scratch/called"
[ "$(wc -l <"$scratch/called")" -gt 30 ] || fail "which functions are there?"
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

# As many bytes come back as left.  Of GPT-2's 12 blocks, those that are not
# recomputed send what they save; one behind another such block sends its
# input, too: two cases give the two sizes, and the others must agree.
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

# ---- compress: what is saved lies in a buffer of so many bits a value

after_forward() { # level after forward, of the policies and options given
    "$build/memsim" run gpt2 --batch 8 --allocator exact --json "$@" |
        sed -n 's/.*"after_forward_bytes": \([0-9]*\).*/\1/p' | head -n 1
}
with() { # a plugin, its policy
    plugin=$1
    shift
    after_forward --plugin "$build/tests/plugin/$plugin.so" -p "$@"
}
plain=$(after_forward)
same=$(with compress compress:bits=16)
[ "$same" = "$plain" ] || fail "compress:bits=16 has $same, not $plain bytes"
half=$((plain - $(with compress compress:bits=8)))
quarter=$((plain - $(with compress compress:bits=4)))
[ "$half" -gt 0 ] || fail "compress:bits=8 saves nothing"
# each buffer is cut to whole bytes
[ $((3 * half / 2 / 1000)) = $((quarter / 1000)) ] ||
    fail "compress: $half bytes at 8 bits, $quarter at 4"
"$build/memsim" run gpt2 --plugin "$build/tests/plugin/compress.so" \
    -p compress:bits=4 --dump program >one.program
grep -q '^task .* flops compute  # quantize$' one.program || fail "no task"
"$build/memsim" run gpt2 --program one.program --dump program >two.program
sed 's/  #.*//' one.program >one.bare
sed 's/  #.*//' two.program | cmp - one.bare || fail "a program reads otherwise"

# ---- partition: N ranks hold N parts of what checkpoints hold

held() { # bytes that N ranks save by it
    whole=$(after_forward -p checkpoint:full+ddp --gpus "$1")
    parts=$(with partition partition+checkpoint:full+ddp --gpus "$1")
    echo $((whole - parts))
}
# 12 blocks' inputs, 16-bit hidden states of 8 x 1024 tokens, 768 wide
all=$((12 * 8 * 1024 * 768 * 2))
for n in 2 4 8; do
    [ "$(held $n)" = $((all - all / n)) ] ||
        fail "partition on $n ranks saves $(held $n) of $all bytes"
done
whole=$(after_forward -p checkpoint:full+ddp --gpus 4)
slow=$(with partition partition:slower=0+checkpoint:full+ddp --gpus 4)
[ "$slow" = "$whole" ] || fail "partition:slower=0 partitions all the same"

# ---- lifo: an order of micro-batches; the first one first is GPipe

lifo() { # its arguments, then options
    policy=$1
    shift
    "$build/memsim" run gpt2 --plugin "$build/tests/plugin/lifo.so" \
        -p "lifo:$policy" "$@"
}
lifo ranks=2,first=0 --batch 3 -p microbatch:3 --dump schedule >order.txt
cat >wanted.txt <<END
0F0,0F1,0F2,0B2,0B1,0B0
1F0,1F1,1F2,1B2,1B1,1B0
END
cmp order.txt wanted.txt || fail "lifo runs in another order"
lifo ranks=2,first=1 --batch 4 -p microbatch:4 --dump plan >lifo.plan
"$build/memsim" run gpt2 --batch 4 -p microbatch:4 \
    -p pipeline:2,schedule=gpipe --dump plan | cmp - lifo.plan ||
    fail "lifo:ranks=2,first=1 is not pipeline:2,schedule=gpipe"
# Each micro-batch adds what it saves, its logits (16-bit, 1024 tokens, 50257
# words), a loss of 4 bytes, and its tokens and labels.
peak_of() { # of --json on standard input
    sed -n 's/.*"peak": {"allocated_bytes": \([0-9]*\).*/\1/p' | head -n 1
}
for n in 1 2 3; do
    lifo first=0 --batch $n -p microbatch:$n --allocator exact --json >$n.json
done
saved=$(sed -n 's/.*"saved_for_backward_bytes": \([0-9]*\).*/\1/p' 1.json |
    head -n 1)
more=$((saved + 1024 * 50257 * 2 + 4 + 2 * 1024 * 8))
for n in 1 2; do
    a=$(peak_of <$n.json) b=$(peak_of <$((n + 1)).json)
    [ $((b - a)) = $more ] ||
        fail "lifo: micro-batch $n adds $((b - a)) bytes, not $more"
done

# ---- largest: what goes while the step runs; it is dtr:h=size

largest() {
    policy=$1
    shift
    "$build/memsim" run gpt2 --batch 8 \
        --plugin "$build/tests/plugin/largest.so" -p "largest:$policy" "$@"
}
largest budget=8GiB --dump plan >largest.plan
grep -q ' recompute ' largest.plan || fail "largest evicts nothing"
"$build/memsim" run gpt2 --batch 8 -p dtr:budget=8GiB,h=size --dump plan |
    cmp - largest.plan || fail "largest is not dtr:h=size"
peak=$(largest budget=8GiB --allocator exact --json | peak_of)
[ "$peak" -le $((8 << 30)) ] || fail "largest: a peak of $peak bytes"
largest budget=1TiB --dump plan >largest.plan
"$build/memsim" run gpt2 --batch 8 --dump plan | cmp - largest.plan ||
    fail "largest evicts where there is room"
largest budget=8GiB,most=2 >most.txt 2>&1 && fail "a third victim"
grep -q '^memsim: largest: .*with nothing left that may go' most.txt ||
    fail "without a victim: $(cat most.txt)"
