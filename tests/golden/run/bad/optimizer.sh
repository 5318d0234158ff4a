# SPDX-License-Identifier: GPL-3.0-or-later
# Settings that an optimizer does not know or that contradict it are refused.
try() {
    "$MEMSIM" run tiny16.json "$@" 2>&1
    echo "status $?"
}
try --optimizer adamv
try --optimizer adam-9bit
try --optimizer rmsprop --set training.optimizer_impl=fused
try --optimizer adamw-8bit --set training.optimizer_impl=foreach
try --optimizer adafactor -p zero:1,dp=8
try --optimizer adamw-8bit -p zero:1,dp=8,impl=deepspeed
try --optimizer adafactor-hf -p offload:optimizer
back=training.optimizer_in_backward=yes
clip=training.clip_norm=1
try --optimizer none --set $back
try --set $back --set $clip
try --set $back --set training.zero_grad=keep
try --set $back --batch 4 -p microbatch:2
try --set $back -p zero:1,dp=8,impl=deepspeed
try --set $back -p zero:1,dp=8,impl=megatron
try --set $back -p offload:optimizer
try --set $clip --optimizer none
try --set training.clip_norm=-1
try --set training.optimizer_in_backward=maybe
try --set lora.targets=mlp
try --set lora.base=nf4
try --set lora.rank=-1
try --set lora.rank=8 --set lora.target=mlp
try --set lora.rank=8 --set lora.base=fp4
try --set lora.rank=8 --set lora.base=nf4 --precision autocast-bf16
try --set lora.rank=8 -p zero:1,dp=8,impl=deepspeed
try --set lora.rank=8 -p fsdp:impl=1,dp=8
try --set lora.trains=A
try --set training.optimizer_refresh=yes
try --optimizer lomo
try --optimizer lomo --precision bf16 --set training.optimizer_in_backward=no
try --optimizer adamw-kahan --precision fp16-mixed
try --set training.weight_decay=0.01
try --set training.weight_decay=no --optimizer lomo --precision bf16
try --set training.weight_decay=yes --optimizer none
try --set training.optimizer_rank=8
try --optimizer muon --set training.optimizer_block=8
try --optimizer galore --set training.optimizer_rank=0
try --optimizer soap -p fsdp:dp=8
try --optimizer muon -p fsdp:impl=1,dp=8
try --optimizer muon -p zero:2,dp=8,impl=deepspeed
try --optimizer muon -p zero:3,dp=8,impl=deepspeed,reduce_scatter=0
# The hint speaks of what was typed.
try --optimizer adamw-8bit -p deepspeed:1,dp=8
try --set $back -p deepspeed:1,dp=8
try --set lora.rank=8 -p deepspeed:1,dp=8
try --optimizer muon -p deepspeed:0,dp=8 --precision fp16-mixed
try --optimizer muon -p deepspeed:3,dp=8,reduce_scatter=0
