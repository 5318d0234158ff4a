#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Draws the gallery anew: every kind of figure for three models.
#
#   tools/gallery.sh MEMSIM [FOLDER]     (cmake --build BUILD --target gallery)
set -eu
case $1 in
/*) memsim=$1 ;;
*) memsim=$PWD/$1 ;;
esac
cd "${2:-$(dirname "$0")/../plots/gallery}"
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT

one() { # figure, then what memsim run is given: the figures of one run
    figure=$1
    shift
    "$memsim" run "$@" --quiet --plot "$figure.png" --figure "${figure##*-}"
}

several() { # figure, then what memsim compare is given
    figure=$1
    shift
    "$memsim" compare "$@" --quiet --plot "$figure.png" --figure "${figure##*-}"
}

pools() { # figure, then a step: through PyTorch's allocator with options
    figure=$1
    shift
    for option in '' ,expandable_segments=True ,max_split_size_mb=128; do
        "$memsim" run "$@" --allocator "torch$option" --json
    done | "$memsim" plot - --quiet -o "$figure.png" --figure address
}

curve() { # figure, title, then what memsim sweep is given
    figure=$1 title=$2
    shift 2
    rm -f "$rows"
    "$memsim" sweep "$@" --quiet -o "$rows"
    "$memsim" plot "$rows" --quiet --device h100 --title "$title" \
        -o "$figure.png" --figure curve
}

# 175 billion parameters on 64 GPUs
zero='zero:3,dp=64'
one gpt3-timeline gpt3 -p "$zero+checkpoint:full"
one gpt3-gantt gpt3 -p "$zero+swap:te=84"
one gpt3-layers gpt3 -p "$zero+checkpoint:sqrt"
one gpt3-ranks gpt3 -p "$zero+checkpoint:full"
one gpt3-address gpt3 -p "$zero+checkpoint:full" --allocator torch
one gpt3-nvme-gantt gpt3 \
    -p checkpoint:full+offload:optimizer/params/gradients,to=nvme
set -- gpt3 -p "$zero" -p "$zero+checkpoint:sqrt" -p "$zero+checkpoint:full" \
    -p "$zero+swap:te=84" -p "$zero+offload:optimizer+checkpoint:full" \
    -p 'fsdp:dp=64+checkpoint:full' -p 'fsdp:dp=64+checkpoint:sac'
several gpt3-bars "$@"
several gpt3-pareto "$@"
curve gpt3-curve 'GPT-3 175B, ZeRO-3: ranks that share the states' gpt3 \
    --grid 'policy=zero:3;zero:3+checkpoint:sqrt;zero:3+checkpoint:full' \
    --grid 'gpus=16..512*2'

# a convolutional network
one resnet50-timeline resnet50 --batch 256
one resnet50-gantt resnet50 --batch 256 -p swap:vdnn=conv
one resnet50-layers resnet50 --batch 256 -p checkpoint:sqrt
one resnet50-ranks resnet50 --batch 256 -p ddp:dp=8
one resnet50-address resnet50 --batch 256 --allocator torch
set -- resnet50 --batch 256 --memory 12GiB -p none -p checkpoint:sqrt \
    -p checkpoint:full -p microbatch:2 -p microbatch:4 -p swap:vdnn=conv \
    -p swap:vdnn=all -p swap:superneurons
several resnet50-bars "$@"
several resnet50-pareto "$@"
curve resnet50-curve 'ResNet-50: peak memory against batch' resnet50 \
    --grid 'policy=none;checkpoint:sqrt;microbatch:4' --grid 'batch=8..2048*2'

# a small decoder
one gpt2-timeline gpt2 --batch 32 -p checkpoint:sqrt
one gpt2-gantt gpt2 --batch 32 -p fsdp:dp=8
one gpt2-layers gpt2 --batch 32 -p checkpoint:every=2
one gpt2-ranks gpt2 --batch 32 -p zero:2,dp=8
pools gpt2-address gpt2 --batch 8
set -- gpt2 --batch 32 --memory 24GiB -p none -p checkpoint:sqrt \
    -p checkpoint:full -p checkpoint:every=2 -p microbatch:2 -p microbatch:4 \
    -p swap:save_on_cpu -p swap:te=6 -p offload:optimizer
several gpt2-bars "$@"
several gpt2-pareto "$@"
curve gpt2-curve 'GPT-2: peak memory against sequence, batch 8' gpt2 --batch 8 \
    --grid 'policy=none;checkpoint:sqrt;checkpoint:full' \
    --grid 'sequence=64..1024*2'
