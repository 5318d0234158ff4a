#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Help by questions: each command that a page of memsim help shows runs as it
# stands, in the page's order; words of other programs lead to memsim's own,
# from help and from the errors of --policy and of options:
#
#   tests/questions.sh PROGRAM
set -eu
export LC_ALL=C
case $1 in
/*) memsim=$1 ;;
*) memsim=$PWD/$1 ;;
esac
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin"
ln -s "$memsim" "$folder/bin/memsim"
PATH=$folder/bin:$PATH
export PATH PYTHONPATH="${memsim%/*}/python" PYTHONDONTWRITEBYTECODE=1
status=0
fail() {
    echo "questions.sh: $*" >&2
    status=1
}

# ---- commands

memsim help | sed -n '/^Questions/,/^$/s/^  \([a-z-]*\) .*/\1/p' \
    >"$folder/questions"
[ -s "$folder/questions" ] || fail "memsim help lists no questions"
while read -r name; do
    mkdir "$folder/$name"
    memsim help "$name" | sed -n 's/^    \([a-z].*\)$/\1/p' >"$folder/commands"
    [ -s "$folder/commands" ] || fail "memsim help $name shows no command"
    while IFS= read -r command; do
        case $command in
        python3*)
            command -v python3 >/dev/null || continue
            [ -d "$PYTHONPATH" ] || continue
            [ -z "${MEMSIM_SANITIZED-}" ] || continue
            ;;
        *--plot*) command -v gnuplot >/dev/null || continue ;;
        esac
        (cd "$folder/$name" && sh -c "$command") </dev/null \
            >"$folder/out" 2>"$folder/err" ||
            fail "memsim help $name: $command: $(cat "$folder/err")"
        [ -s "$folder/out" ] || [ -s "$folder/err" ] ||
            case $command in
            echo* | *'>'*) ;;
            *) fail "memsim help $name: $command says nothing" ;;
            esac
    done <"$folder/commands"
done <"$folder/questions"

# ---- words

while IFS= read -r word; do
    memsim help "$word" >"$folder/out" 2>"$folder/err" ||
        fail "memsim help \"$word\": $(cat "$folder/err")"
    [ -s "$folder/out" ] || fail "memsim help \"$word\" is empty"
    [ "$word" != "${word% *}" ] ||
        memsim run gpt2 --gpus 4 "--$word" x >"$folder/out" \
            2>"$folder/err" </dev/null || grep -q '^  ' "$folder/err" ||
        fail "--$word: no hint"
    ! grep -q '"memsim help run" lists' "$folder/err" ||
        fail "--$word: no answer"
    memsim run gpt2 --gpus 4 -p "$word" >"$folder/out" 2>"$folder/err" ||
        grep -q '^  ' "$folder/err" || fail "-p \"$word\": no hint"
    ! grep -q '^  policies: ' "$folder/err" ||
        fail "-p \"$word\": no answer"
done <<'end'
activation checkpointing
gradient checkpointing
activation-recomputation
rematerialization
FSDP
fully sharded data parallel
tp
pp
cp
ep
tensor parallel
pipeline parallel
context parallel
expert parallel
sequence parallel
gradient accumulation
world size
AMP
mixed precision
autocast
sharded optimizer
optimizer state sharding
distributed optimizer
CUDA out of memory
out of memory
oom
ZeRO-3
HSDP
cpu offload
activation offloading
paged optimizer
flash attention
torch compile
LoRA
QLoRA
batch size
micro batch size
sequence length
model parallel
data parallel
quantization
8bit
end
exit $status
