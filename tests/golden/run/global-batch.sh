# SPDX-License-Identifier: GPL-3.0-or-later
# The job's samples are those of its ranks together: the same step either way.
step() {
    "$MEMSIM" run tiny-llama.json -p zero:2,dp=4+microbatch:2 "$@" --json |
        sed 's/.*"parameters": /"parameters": /'
}
[ "$(step --batch 6)" = "$(step --global-batch 24)" ] && echo same
[ "$(step --batch 6)" = "$(step --global-batch 24 --batch 6)" ] && echo same
"$MEMSIM" run tiny-llama.json --gpus 4 -p zero:2+microbatch:2 \
    --global-batch 24 | head -3
"$MEMSIM" run ops.json --global-batch 16 -p microbatch:2 | head -2
"$MEMSIM" sweep tiny.json --grid global_batch=4,8 \
    --grid 'policy=ddp:dp=1;ddp:dp=4;' |
    cut -d, -f 1-5,9,12
