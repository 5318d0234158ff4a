#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# What memory costs in time: sweeps policies over a model and draws peak memory
# against step time.  An example to copy and edit:
#
#   tools/pareto.sh [MODEL [BATCH [FOLDER]]]
#
# memsim is taken from PATH, or from MEMSIM.  Interrupted and called again, it
# goes on where it stopped.
set -eu
memsim=${MEMSIM:-memsim}
model=${1:-gpt2-xl}
batch=${2:-16}
folder=${3:-.}
name=$(basename "$model" .json)
rows=$folder/$name.csv
figure=$folder/$name-pareto.svg

policies='none;checkpoint:every=4;checkpoint:every=2;checkpoint:sqrt'
policies="$policies;checkpoint:full;microbatch:4;microbatch:4+checkpoint:full"
policies="$policies;swap:te=8;swap:save_on_cpu;offload:optimizer"
policies="$policies;offload:optimizer+checkpoint:full"

"$memsim" sweep "$model" --batch "$batch" --grid "policy=$policies" \
    -o "$rows" --resume
"$memsim" plot "$rows" --figure pareto --device h100 \
    --title "$name, batch $batch" -o "$figure"
