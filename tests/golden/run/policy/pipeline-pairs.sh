# SPDX-License-Identifier: GPL-3.0-or-later
# The all-to-alls of one half of a pair go beside what the other computes.
run() {
    "$MEMSIM" run mixtral-8x7b --set model.layers=8 --gpus 16 --batch 8 \
        -p "pipeline:2,$1+expert:8+microbatch:8" | keep step,traffic,peak
}
run schedule=dualpipev,pairs=0
run schedule=dualpipev
run chunks=2
run chunks=2,pairs=1
"$MEMSIM" run mixtral-8x7b --set model.layers=8 --gpus 16 --batch 8 \
    -p pipeline:2,chunks=2,pairs=1+expert:8+microbatch:8 --dump schedule
exec 2>&1
"$MEMSIM" run mixtral-8x7b --gpus 16 --batch 8 \
    -p pipeline:2,pairs=1+expert:8+microbatch:8
"$MEMSIM" run tiny16.json --batch 2 -p pipeline:2,chunks=2,pairs=1+microbatch:2
