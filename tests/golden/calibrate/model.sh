# SPDX-License-Identifier: GPL-3.0-or-later
# A trace is held against the model that it is said to be of.
small='--set model.layers=1 --set model.hidden=1024 --set model.heads=16
    --set model.vocab=32768'
try() {
    # shellcheck disable=SC2086 # words
    "$MEMSIM" calibrate kineto.json "$@" $small 2>&1 | head -n 6
}
try gpt2 --batch 8 --check
try gpt2 --batch 8 --json | head -n 1
try gpt2
small=
try gpt2-medium --batch 8
try resnet50
try nothing
try --batch 8
try resnet50 gpt2
"$MEMSIM" calibrate shapes.csv gpt2
echo "$?"
