# SPDX-License-Identifier: GPL-3.0-or-later
# A run that does not fit names a setup that does: typed, it fits.
try() {
    echo "memsim $*"
    "$MEMSIM" "$@" >out
    keep 'verdict, fits, or' <out
    sed -n 's/^\(fits\|or\): *memsim run/run/p' out >commands
    while read -r words; do
        # shellcheck disable=SC2086 # the words of a command
        "$MEMSIM" $words --check -q
        echo "$?"
    done <commands
}
try run gpt3.json --policy checkpoint:sqrt
try run llama-3.1-8b
try run gpt2-xl --batch 8 -p fsdp --gpus 2 --memory 16GiB
try run gpt3 --gpus 8 -p zero:1 --global-batch 64
