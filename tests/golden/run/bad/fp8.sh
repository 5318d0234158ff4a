# SPDX-License-Identifier: GPL-3.0-or-later
# fp8 and its variants are refused where memsim does not know what they do.
try() {
    "$MEMSIM" run "$@" 2>&1
    echo "status $?"
}
tiny() {
    try tiny16.json --batch 2 "$@"
}
tiny --precision fp9
tiny --precision fp8 --device a100
tiny --precision msamp-o1 --device 3090
tiny --precision fp8 --set training.device=cpu
tiny --precision fp8 --set fp8.recipe=mxfp8
tiny --precision fp8 --set fp8.recipe=block --device b200
tiny --precision fp8 --set fp8.recipe=e4m3
tiny --precision mxfp8
tiny --precision mxfp8-torchao --set training.device=cpu
tiny --precision mxfp8 --device b200 --set fp8.recipe=delayed
tiny --precision mxfp8-torchao --device b200 --set fp8.weights=kept
tiny --set fp8.recipe=delayed
tiny --precision bf16 --set fp8.weights=kept
tiny --precision msamp-o2 --set fp8.weights=kept
tiny --precision fp8 --set lora.rank=8
tiny --precision msamp-o1 --optimizer lion
tiny --precision bf16-remainders --optimizer sgd
tiny --precision bf16-remainders --set optimizer_impl=foreach
tiny --precision msamp-o1 --set gradients=fp32
tiny --precision bf16 --set gradients=main
tiny --precision fp16-mixed --set gradients=main -p fsdp:dp=8
tiny --set gradients=weights -p fsdp:dp=8
tiny --precision fp8-primary -p zero:3,dp=8
tiny --precision msamp-o2 -p fsdp:dp=8
tiny --precision msamp-o2 -p zero:1,dp=8,impl=megatron
tiny --precision msamp-o3 -p zero:1,dp=8,impl=deepspeed
tiny --precision fp8-primary -p offload:optimizer
tiny --precision fp8 --set fp8.weights=kept -p fsdp:dp=8
try mlp.json --precision fp8 --batch 3
cat >narrow.json <<'J'
{"memsim": 1, "input": {"shape": [24]}, "layers": [
  {"type": "linear", "name": "fc", "out": 30},
  {"type": "linear", "out": 8}, {"type": "mean"}]}
J
try narrow.json --precision fp8 --batch 8
try narrow.json --precision fp8 --batch 8 --device b200
try ops.json --precision fp8
try lstm.json --precision fp8
try ops.json --set frozen.blocks=1
