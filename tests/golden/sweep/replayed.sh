# SPDX-License-Identifier: GPL-3.0-or-later
# Which points are replayed event by event, and why: the same with one thread
# and with two, whichever comes first.
policies='policy=zero:3,dp=2;offload:optimizer;pipeline:2;swap:save_on_cpu'
show() {
    "$MEMSIM" sweep gpt2 -q --set model.layers=2 --grid batch=4,8 --json \
        --grid "$policies;swap:vdnn=all,to=nvme" -j "$1" |
        sed -n 's/.*"policy": \("[^"]*"\).*"replayed_because": /\1 /p'
}
show 1 >one.txt
show 2 >two.txt
cmp one.txt two.txt
cat one.txt
