# SPDX-License-Identifier: GPL-3.0-or-later
# What is told is what run says: the last line, typed, has the row's numbers.
numbers() {
    grep -o '"peak_reserved_bytes": [0-9]*\|"step_ns": [0-9]*' | head -2
}
try() {
    told=$("$MEMSIM" fit "$@" --json)
    echo "$told" | sed 's/.*"recommendation"//' | numbers | grep -o '[0-9]*$'
    command=$(echo "$told" | sed 's/.*"command": "\([^"]*\)".*/\1/')
    echo "$command"
    eval "\"\$MEMSIM\" ${command#memsim} --json" >run.json
    sed 's/"ranks": .*//; s/.*"reserved_bytes": \([0-9]*\), "time_ns".*/\1/' \
        run.json
    sed 's/.*"time": {"step_ns": \([0-9]*\).*/\1/' run.json
}
try tiny-llama.json --memory 1GiB --sequence 64 -p checkpoint:full
try tiny-llama.json --gpus 4 --global-batch 32 -p zero:3
try tiny16.json --batch 4 --kernels eager --allocator exact
try tiny16.json --goal step --vary precision -p checkpoint:full
try tiny-llama.json --max batch --memory 700MiB -p none
