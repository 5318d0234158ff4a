# SPDX-License-Identifier: GPL-3.0-or-later
# Each of the ranks that split layers sends its part; the receivers gather them.
run() {
    "$MEMSIM" run gpt3-6.7b --gpus 32 --batch 8 -p "$1+microbatch:8" |
        keep step,traffic,peak
}
run tensor:8+pipeline:4
run tensor:8+pipeline:4,messages=parts
exec 2>&1
bad() {
    "$MEMSIM" run tiny16.json --batch 8 -p "$1+microbatch:8"
}
bad tensor:2,sp+pipeline:4,messages=parts
bad pipeline:4,messages=parts
bad tensor:2+pipeline:2,chunks=2,messages=parts
bad tensor:2+pipeline:4,impl=torch,messages=parts
