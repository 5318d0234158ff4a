# SPDX-License-Identifier: GPL-3.0-or-later
# What was understood, as data.
cd from || exit 2
"$MEMSIM" run --gpus 8 --from titan.toml --json 2>/dev/null |
    grep -o '"from": {.*}, "parameters"'
"$MEMSIM" inspect --from axolotl.yml --json 2>/dev/null | grep -c '"from": {'
"$MEMSIM" fit ./config.json --from accelerate.yaml --batch 1 --json \
    -p checkpoint:full 2>/dev/null | grep -o '"from": {"files": [^]]*]'
"$MEMSIM" explain ./config.json --from accelerate.yaml --json 2>/dev/null |
    grep -o '"from": {"files": [^]]*]'
"$MEMSIM" run gpt2 --json | grep -c '"from"'
true
