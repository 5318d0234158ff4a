# SPDX-License-Identifier: GPL-3.0-or-later
# One framework runs a step: states are offloaded by the one that shards them.
try() {
    "$MEMSIM" run tiny16.json -q --dump policy "$@" 2>&1
    echo "status $?"
}
try -p zero:1,dp=4,impl=deepspeed+offload:optimizer
try -p zero:1,dp=4,impl=megatron+offload:optimizer,impl=megatron
try -p zero:1,dp=4,impl=megatron+offload:optimizer,impl=deepspeed
try -p zero:3,dp=4,impl=deepspeed+offload:optimizer,impl=ideal
try -p zero:2,dp=4,impl=ideal+offload:optimizer,impl=deepspeed
try -p zero:2,dp=4+offload:optimizer,impl=deepspeed
try -p zero:1,dp=4,impl=megatron+offload:optimizer/gradients
try -p zero:1,dp=4,impl=deepspeed+offload:optimizer,delayed=1
try -p zero:2,dp=4,impl=deepspeed+offload:optimizer,percent=40
try -p zero:3,dp=4,impl=deepspeed+offload:optimizer,percent=40
