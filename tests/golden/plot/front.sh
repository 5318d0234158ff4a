# SPDX-License-Identifier: GPL-3.0-or-later
# Ways to checkpoint that were saved are drawn as when they were found.
"$MEMSIM" compare unet --checkpoint-all --json --plot now.svg >front.json
"$MEMSIM" plot front.json -o then.svg && cmp now.svg then.svg && echo same
"$MEMSIM" plot - --figure front --quiet -o then.svg <front.json &&
    cmp now.svg then.svg && echo same
"$MEMSIM" run gpt2 --json >run.json
try() {
    "$MEMSIM" plot "$@" 2>&1 | grep -v '^ *[0-9]* |\|^ *|'
}
try front.json --figure bars
try front.json --memory 4GiB
try front.json run.json
try run.json --figure front
sed 's/"step_ns": [0-9]*/"step_ns": 0/' front.json >zero.json
try zero.json
sed 's/"rows": \[.*/"rows": []}/' front.json >none.json
try none.json
head -c 2000 front.json >cut.json
try cut.json
