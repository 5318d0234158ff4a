# SPDX-License-Identifier: GPL-3.0-or-later
# deepspeed:STAGE and zero:STAGE,impl=deepspeed are two names of one policy: the
# result is the same but for the name, which stays as it is written.
name() {
    sed -n '1s/.*"policy": "\([^"]*\)".*/\1/p' "$1"
}
for arguments in 0 1 2,overlap_comm=1 2,reduce_bucket_size=1e5 3 \
    3,zero_hpz_partition_size=4,param_persistence_threshold=0; do
    stage=${arguments%%,*} rest=${arguments#?}
    precision=bf16-mixed
    [ "$stage" != 0 ] || precision=fp16-mixed
    "$MEMSIM" run tiny16.json --batch 8 --json --precision $precision \
        -p "deepspeed:$stage,dp=8$rest" >one
    "$MEMSIM" run tiny16.json --batch 8 --json --precision $precision \
        -p "zero:$stage,impl=deepspeed,dp=8$rest" >two
    echo "$(name one), $(name two)"
    sed 's/zero:\([0-3]\),dp=8,impl=deepspeed/deepspeed:\1,dp=8/g' two |
        cmp - one && echo "  the same"
done
try() {
    "$MEMSIM" run tiny16.json -p "$1" 2>&1
    echo "status $?"
}
try deepspeed
try deepspeed:2,dp=8,max_reuse_distance=1e6
try deepspeed:2,dp=8,prefetch=1
try deepspeed:2,dp=8,impl=deepspeed
try zero:2,dp=8,impl=deepspeed,impl=ideal
try deepspeed:2,dp=8+zero:1,dp=8
for typed in "deepspeed:" "zero:2,impl=deepspeed,"; do
    echo "after $typed"
    "$MEMSIM" completion words -- run gpt2 -p "$typed" | cut -f 1 | head -n 4
done
