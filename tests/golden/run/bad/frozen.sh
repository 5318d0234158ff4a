# SPDX-License-Identifier: GPL-3.0-or-later
# Settings are refused whose effect on frozen weights memsim does not know.
try() {
    "$MEMSIM" run tiny16.json "$@" 2>&1
    echo "status $?"
}
base=frozen.base=nf4
try --set $base
try --set frozen.base=nf5
try --set frozen.blocks=17
try --set frozen.blocks=-1
try --set frozen.block=1
try --set frozen.blocks=2 --set lora.rank=4
try --set mode=inference --set $base --precision autocast-bf16
try --set mode=inference --set $base --precision fp8
try --set frozen.blocks=2 -p zero:1,dp=8
try --set frozen.blocks=2 --set $base -p offload:optimizer
