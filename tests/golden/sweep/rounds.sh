# SPDX-License-Identifier: GPL-3.0-or-later
# Pipelines of many micro-batches are told from few: the row is that of a sweep
# in which it comes first, which is replayed, with one thread and with two.
policies='pipeline:2;pipeline:2+checkpoint:full;pipeline:2,schedule=gpipe'
sweep() {
    "$MEMSIM" sweep gpt2 -q --set model.layers=4 --batch 96 --json \
        -p microbatch:96 --grid "policy=$1" -j "${2:-1}" |
        sed 's/"point": [0-9]*//'
}
sweep "$policies" >one.txt
sweep "$policies" 2 >two.txt
cmp one.txt two.txt
sweep 'pipeline:2' >alone.txt
sweep 'pipeline:2+checkpoint:full' >>alone.txt
sweep 'pipeline:2,schedule=gpipe' >>alone.txt
cmp one.txt alone.txt
sed -n 's/.*"policy": \("[^"]*"\).*"replayed_because": /\1 /p' one.txt
