# SPDX-License-Identifier: GPL-3.0-or-later
# Settings that DeepSpeed does not know, or that change nothing, are refused.
try() {
    "$MEMSIM" run tiny16.json "$@" 2>&1
    echo "status $?"
}
try -p zero:2,dp=8,reduce_bucket_size=1e6
try -p zero:2,dp=8,impl=deepspeed,max_reuse_distance=1e6
try -p zero:0,dp=8,impl=deepspeed,overlap_comm=1
try -p zero:3,dp=8,impl=deepspeed,round_robin_gradients=1
try -p zero:3,dp=8,impl=deepspeed,prefetch=2
try -p zero:1,dp=8,impl=megatron,overlap_comm=1
each=use_multi_rank_bucket_allreduce=0
try -p zero:2,dp=8,impl=deepspeed,reduce_scatter=0,$each
try -p zero:2,dp=8,impl=deepspeed,reduce_bucket_size=0
try -p zero:2,dp=8,impl=deepspeed --precision bf16
try -p zero:0,dp=8,impl=deepspeed --precision fp32
try -p zero:0,dp=8,impl=deepspeed
fp32=training.gradients=fp32
try -p zero:1,dp=8,impl=deepspeed,reduce_bucket_size=1e6 --set $fp32
try -p zero:1,dp=8,impl=deepspeed+offload:optimizer --set $fp32
try -p zero:1,dp=8,impl=deepspeed --set training.optimizer_impl=foreach
try -p deepspeed:2,dp=8 --precision bf16
try -p deepspeed:1,dp=8,reduce_bucket_size=1e6 --set $fp32
