#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Draws the gallery anew: every kind of figure for three set-ups in which the
# policy decides whether the step fits, and one of its blocks.
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

front() { # figure, then a step: every way to checkpoint
    figure=$1
    shift
    "$memsim" compare "$@" --checkpoint-all --quiet --plot "$figure.png"
}

curve() { # figure, then what memsim sweep is given
    figure=$1
    shift
    rm -f "$rows"
    "$memsim" sweep "$@" --quiet -o "$rows"
    "$memsim" plot "$rows" --quiet -o "$figure.png" --figure curve
}

# 8 billion parameters, full fine-tuning on 8 GPUs at the whole context length
set -- llama-3-8b --gpus 8 --batch 2 --sequence 8192
one llama3-timeline "$@" -p fsdp+checkpoint:full
one llama3-gantt "$@" -p fsdp+checkpoint:full
one llama3-layers "$@" -p fsdp+checkpoint:sqrt
one llama3-ranks "$@" -p fsdp+checkpoint:full
pools llama3-address "$@" -p fsdp+checkpoint:full
set -- "$@" -p fsdp -p fsdp+checkpoint:sac -p fsdp+checkpoint:sqrt \
    -p fsdp+checkpoint:full -p fsdp+swap:te=31 -p fsdp+microbatch:2 \
    -p fsdp+checkpoint:full+offload:optimizer
several llama3-bars "$@"
several llama3-pareto "$@"
curve llama3-curve llama-3-8b --gpus 8 --batch 2 \
    --grid 'policy=fsdp;fsdp+checkpoint:sac;fsdp+checkpoint:full' \
    --grid 'sequence=1024..16384*2'

# 175 billion parameters on 64 GPUs
zero='zero:3,dp=64'
one gpt3-timeline gpt3 -p "$zero+checkpoint:full"
one gpt3-gantt gpt3 -p "$zero+swap:te=84"
one gpt3-layers gpt3 -p "$zero+checkpoint:sqrt"
one gpt3-ranks gpt3 -p "$zero+checkpoint:full"
one gpt3-address gpt3 -p "$zero+checkpoint:full"
one gpt3-nvme-gantt gpt3 \
    -p checkpoint:full+offload:optimizer/params/gradients,to=nvme
several gpt3-pipeline gpt3 --gpus 64 --batch 16 -p tensor:8,sp+microbatch:16 \
    --variant '1F1B: pipeline=8' \
    --variant 'interleaved, 2 chunks: pipeline=8,chunks=2' \
    --variant 'ZB-H2: pipeline=8,schedule=zb-h2' \
    --variant 'DualPipeV: pipeline=8,schedule=dualpipev'
front gpt3-front gpt3 --gpus 8 --batch 8 -p tensor:8
set -- gpt3 -p "$zero" -p "$zero+checkpoint:sqrt" -p "$zero+checkpoint:full" \
    -p "$zero+swap:te=84" -p "$zero+offload:optimizer+checkpoint:full" \
    -p 'fsdp:dp=64+checkpoint:full' -p 'fsdp:dp=64+checkpoint:sac'
several gpt3-bars "$@"
several gpt3-pareto "$@"
curve gpt3-curve gpt3 \
    --grid 'policy=zero:3;zero:3+checkpoint:sqrt;zero:3+checkpoint:full' \
    --grid 'gpus=16..512*2'

# a convolutional network on a card of 24 GiB
set -- resnet50 --device 4090 --batch 640
front resnet50-front "$@"
front unet-front unet --batch 16
one resnet50-timeline "$@" -p checkpoint:sqrt
one resnet50-gantt "$@" -p swap:vdnn=conv
one resnet50-layers "$@" -p checkpoint:sqrt
one resnet50-ranks "$@" -p ddp:dp=8+checkpoint:sqrt
one resnet50-address "$@" -p checkpoint:sqrt
set -- "$@" -p none -p checkpoint:sqrt -p checkpoint:full -p microbatch:2 \
    -p microbatch:4 -p swap:vdnn=conv -p swap:vdnn=all -p swap:superneurons
several resnet50-bars "$@"
several resnet50-pareto "$@"
curve resnet50-curve resnet50 --device 4090 \
    --grid 'policy=none;checkpoint:sqrt;microbatch:4' --grid 'batch=8..1024*2'

# a step so small that single blocks can be seen
pools gpt2-address gpt2 --batch 8
