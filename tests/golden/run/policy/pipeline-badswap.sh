# SPDX-License-Identifier: GPL-3.0-or-later
# Swaps that do not stand beside stages, each with its reason.
exec 2>&1
for bad in te=2 torchtune layers vdnn=all belady save_on_cpu \
    checkpoints,impl=deepspeed+checkpoint:full checkpoints megatron; do
    "$MEMSIM" run tiny16.json -p "pipeline:2+microbatch:4+swap:$bad" --batch 4
    echo "status $?"
done
"$MEMSIM" run tiny16.json --batch 4 \
    -p pipeline:2,schedule=zb-h1,impl=torch+microbatch:4+swap:save_on_cpu
echo "status $?"
