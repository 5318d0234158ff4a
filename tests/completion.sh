#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Completion: what memsim offers is what its help lists, and the scripts for
# bash, zsh and fish show it in these shells (where they are installed):
#
#   tests/completion.sh MEMSIM
set -eu
export LC_ALL=C.UTF-8
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export HOME="$folder" XDG_CONFIG_HOME="$folder" XDG_DATA_HOME="$folder"
mkdir "$folder/bin"
ln -s "$(realpath "$1")" "$folder/bin/memsim"
PATH=$folder/bin:$PATH
cd "$folder"
failed=0

fail() {
    echo "completion.sh: $*" >&2
    failed=1
}

same() { # what: the sorted lines of ./told and ./offered
    sort -u told >told.sorted
    sort -u offered >offered.sorted
    [ -s told.sorted ] || fail "$1: help lists none"
    diff -u told.sorted offered.sorted >&2 ||
        fail "$1: help (-) and completion (+) differ"
}

words() { # candidates for the last word
    memsim completion words -- "$@" | sed '/^:files/d' | cut -f 1
}

# ---- what help lists

memsim help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' >told
words '' >offered
same commands
cp told commands
while read -r command; do
    memsim help "$command" | sed -n '/^Options/,/^$/p' |
        grep -o '^  \(-[a-z], \|    \)--[a-z-]*' | tr -d ' ' |
        tr , '\n' >told
    words "$command" - >offered
    same "options of $command"
done <commands

memsim help | sed -n -e '/^Questions/,/^$/s/^  \([a-z-]*\) .*/\1/p' \
    -e '/^Topics/,/^$/s/^  \([a-z]*\) .*/\1/p' >topics
{
    cat commands topics
    memsim help policies | sed -n 's/^\([a-z]*\): .*/\1/p'
    memsim help layers | sed -n 's/^\([a-z0-9_]*\): .*/\1/p'
    memsim help families | sed -n 's/^\([a-z]*\): .*/\1/p'
} >told
words help '' >offered
same 'topics of help'

memsim help policies | sed -n 's/^\([a-z]*\): .*/\1/p' >told
words run -p '' | tr -d : >offered
same policies
words run -p none+ | sed 's/^none+//' | tr -d : >offered
same 'policies after +'
while read -r policy; do
    memsim help "$policy" | sed -n 's/^  \([a-z_]\{1,\}\)[= ].*/\1/p' >params
    words run -p "$policy:" | sed "s/^$policy://; s/=$//" >offered
    while read -r param; do
        grep -qx "$param" offered || fail "$policy:$param is not offered"
    done <params
done <told

memsim help models | sed -n 's/^  \([a-z0-9][a-z0-9._-]*\)\( .*\)*$/\1/p' >told
words run '' >offered
same models
memsim help devices | sed -n '2,/^$/s/^  \(.\{22\}\).*/\1/p' |
    tr ' ' '\n' | sed '/^$/d' >told
words run --device '' >offered
same devices

{
    memsim help training | sed -n 's/^  \([a-z0-9_.]*\)=.*/training.\1=/p' |
        sed 's/^training\.graph/graph/; s/^training\.lora/lora/
            s/^training\.fp8/fp8/; s/^training\.frozen/frozen/;
            s/^training\.megatron/megatron/'
    for family in decoder encoder parameters; do
        memsim help "$family" | sed -n 's/^  \([a-z_0-9]*\)=.*/model.\1=/p'
    done
} >told
words run --set '' >offered
same 'keys of --set'
memsim help training |
    sed -n 's/^  precision=\(\S*\).*/\1/p' | tr '|' '\n' | sed '/^$/d' >told
for option in --precision --set; do
    case $option in
    --set) words run --set training.precision= | sed 's/.*=//' >offered ;;
    *) words run $option '' >offered ;;
    esac
    [ "$(head -n 1 told)" = fp32 ] || fail 'which precisions are there?'
    while read -r word; do
        grep -qx -- "$word" offered || fail "$option: $word is not offered"
    done <told
done

# ---- what the parser expects next

check() { # expected words, in one; the words of a command line
    expected=$1
    shift
    got=$(memsim completion words -- "$@" | cut -f 1 | tr '\n' ' ')
    [ "$got" = "$expected${expected:+ }" ] ||
        fail "$*: offered \"$got\", expected \"$expected\""
}
check '' nosuch ''
check 'inspect' ins
check '--precision' run gpt2 --pre
check '--precision' inspect --device h100 --pre
check '--precision=fp16-mixed --precision=fp16' run --precision=fp1
check 'graph policy schedule program plan events checkpoints' run --dump ''
check 'model' inspect --dump ''
check '-pmicrobatch:' run -pmi
check '-p=microbatch:' run -p=mi
check 'checkpoint:sqrt' run gpt2 --policy checkpoint:sq
check 'zero:3,dp=8+checkpoint:by=bytes' run -p zero:3,dp=8+checkpoint:by=b
check 'offload:optimizer/params' run -p offload:optimizer/p
check '' run --batch ''
check '' run gpt2 ''
check ':files' run -- --pre
check ':files' run --csv ''
check ':files gpt2-xl :files' run --plot gpt2-xl
check ':files' run --plot --csv x
check 'policy=' sweep gpt2 --grid po
check 'policy=none;checkpoint:sqrt' \
    sweep gpt2 --grid 'policy=none;checkpoint:sq'
check 'device=a100,h200-141gb-sxm device=a100,h200' \
    sweep gpt2 --grid device=a100,h2
check 'batch=' sweep gpt2 --grid bat
check ':files' plot ''
check ':files' plot a.json ''
check 'model.layers' plot x.csv --x model.la
check 'bash zsh fish' completion ''
check 'result' schema res

# ---- bash

touch 'a b.json' c.json d.txt
mkdir models
memsim completion bash >script.bash
memsim completion zsh >_memsim
memsim completion fish >script.fish
cat >ask.bash <<'END'
# The words as bash would cut them; prints what bash would offer.
. ./script.bash
compopt() { :; }
[[ $(complete -p memsim) == *_memsim* ]] || exit 1
COMP_LINE=$1
COMP_POINT=${#1}
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_memsim memsim
IFS=,
echo "${COMPREPLY[*]}"
END
bash_offers() { # expected, the line, its words
    expected=$1
    shift
    got=$(bash ask.bash "$@") || fail "bash: $1"
    [ "$got" = "$expected" ] ||
        fail "bash: $1: offered \"$got\", expected \"$expected\""
}
if command -v bash >/dev/null; then
    bash -n script.bash || fail 'bash: syntax'
    bash_offers inspect 'memsim ins' memsim ins
    bash_offers --precision 'memsim run --pre' memsim run --pre
    bash_offers fp16-mixed,fp16 'memsim run --precision=fp1' \
        memsim run --precision = fp1
    bash_offers sqrt 'memsim run -p checkpoint:sq' \
        memsim run -p checkpoint : sq
    bash_offers by= 'memsim run -p zero:3,dp=8+checkpoint:by' \
        memsim run -p zero : 3,dp = 8+checkpoint : by
    bash_offers training.precision= 'memsim run --set training.pre' \
        memsim run --set training.pre
    bash_offers true,false 'memsim run --set model.bias=' \
        memsim run --set model.bias =
    bash_offers d.txt 'memsim run --csv d' memsim run --csv d
    bash_offers d.txt 'memsim run --csv=d' memsim run --csv = d
    bash_offers 'alexnet,a b.json' 'memsim run a' memsim run a
    bash_offers models 'memsim run mod' memsim run mod
    bash_offers '' 'memsim run d.t' memsim run d.t
    bash_offers 'vgg16' "memsim run vgg16" memsim run vgg16
fi

# ---- zsh: with stand-ins for its completion system

cat >ask.zsh <<'END'
compdef() { : }
compset() { : }
_describe() { print -rl -- ${(P)3} }
_files() { print -rl -- ":files $*" }
. ./_memsim
words=("$@")
CURRENT=$#
PREFIX=${@[-1]}
_memsim
END
zsh_offers() {
    expected=$1
    shift
    got=$(zsh -f ask.zsh "$@" | tr '\n' ';') || fail "zsh: $*"
    # shellcheck disable=SC2254 # it is a pattern
    case $got in
    $expected) ;;
    *) fail "zsh: $*: offered \"$got\", expected \"$expected\"" ;;
    esac
}
if command -v zsh >/dev/null; then
    zsh -n _memsim || fail 'zsh: syntax'
    zsh_offers 'inspect:*;' memsim ins
    zsh_offers '--precision:*;' memsim run gpt2 --pre
    zsh_offers 'checkpoint\\:sqrt:*;' memsim run -p checkpoint:sqr
    zsh_offers 'training.precision=:*;' memsim run --set training.pre
    zsh_offers ':files -g \*.(json)(-.);' memsim run no
    zsh_offers ':files ;' memsim run --csv no
fi

# ---- fish

fish_offers() { # expected words in one, the line
    got=$(fish --no-config -c "source script.fish; complete -C '$2'" |
        cut -f 1 | tr '\n' ' ')
    [ "$got" = "$1${1:+ }" ] ||
        fail "fish: $2: offered \"$got\", expected \"$1\""
}
if command -v fish >/dev/null; then
    fish -n script.fish || fail 'fish: syntax'
    fish_offers inspect 'memsim ins'
    fish_offers --precision 'memsim run --pre'
    fish_offers '--precision=fp16-mixed --precision=fp16' \
        'memsim run gpt2 --precision=fp1'
    fish_offers checkpoint:sqrt 'memsim run -p checkpoint:sq'
    fish_offers training.precision= 'memsim run --set training.pre'
    fish_offers d.txt 'memsim run --csv d'
    fish_offers --csv=d.txt 'memsim run --csv=d'
    fish_offers vgg16 'memsim run vgg16'
    fish_offers models/ 'memsim run mod'
fi

# ---- errors

memsim completion tcsh 2>err && fail 'tcsh is no shell of ours'
[ "$(head -n 1 err)" = 'memsim: there is no completion for "tcsh"' ] ||
    fail "tcsh: $(cat err)"
exit $failed
