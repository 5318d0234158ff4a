# SPDX-License-Identifier: GPL-3.0-or-later
# nanotron's stages cost as much each; as many layers each by less=0/0; what
# cannot be made; its rule beside ranks that split layers, of other kernels, of
# images.
stages() {
    echo "memsim run $*"
    "$MEMSIM" run "$@" 2>&1 | sed -n '/^stages/,/^[eoa]/{/^[eoa]/!p;}' |
        cut -c 1-29
}
set -- gpt2 --batch 8 --policy microbatch:8
stages "$@" --kernels nanotron --policy pipeline:2
stages "$@" --kernels nanotron --policy pipeline:2,less=0/0
stages "$@" --kernels nanotron --policy pipeline:2,layers=6/6
stages "$@" --kernels flash --policy pipeline:2
stages llama-3-8b --kernels nanotron --gpus 16 --batch 8 \
    --policy tensor:2,sp+microbatch:8+pipeline:8
stages resnet50 --kernels nanotron --batch 4 \
    --policy microbatch:4+pipeline:2
"$MEMSIM" run "$@" --kernels nanotron --policy pipeline:4 2>&1
"$MEMSIM" run "$@" --kernels nanotron --policy pipeline:2,chunks=6 2>&1
true
