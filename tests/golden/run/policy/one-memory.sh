# SPDX-License-Identifier: GPL-3.0-or-later
# Where CPU and GPU share one memory, or there is a CPU alone, nothing leaves it
# by moving to the host; the disk is another.
try() {
    "$MEMSIM" run tiny16.json -q --dump policy "$@" 2>&1
    echo "status $?"
}
for policy in uvm uvm:optimizer swap:te=4 swap:layers offload:optimizer \
    offload:optimizer/gradients,to=nvme,gradients_to=cpu; do
    try --device mi300a -p $policy
done
try --set training.device=cpu -p offload:optimizer
try --device m2u -p offload:optimizer/params/gradients,to=nvme
try --device gh200 -p uvm --memory 592MiB
