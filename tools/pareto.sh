#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# What memory costs in time: sweeps policies over a model and draws peak memory
# against step time.  An example to copy and edit:
#
#   tools/pareto.sh [MODEL [FOLDER]]
#
# memsim is taken from PATH, or from MEMSIM.  Interrupted, it goes on where it
# stopped.
set -eu
memsim=${MEMSIM:-memsim}
model=${1:-gpt2-xl}
folder=${2:-.}
name=$(basename "$model" .json)

"$memsim" sweep "$model" --batch 16 \
    --grid 'policy=none;checkpoint:selective;checkpoint:sqrt;checkpoint:full;checkpoint:every=2;checkpoint:every=4;swap:save_on_cpu;swap:te=16;offload:optimizer;offload:optimizer+checkpoint:sqrt' \
    --grid 'micro_batches=1..4*2' \
    -o "$folder/$name.csv" --resume
"$memsim" plot "$folder/$name.csv" --figure pareto -o "$folder/$name-pareto.svg"
