# SPDX-License-Identifier: GPL-3.0-or-later
# The arguments that each implementation of offloaded checkpoints takes.
try() {
    "$MEMSIM" run tiny16.json -q --dump policy "$@" 2>&1
    echo "status $?"
}
try -p checkpoint:full+swap:checkpoints,impl=deepspeed
try -p checkpoint:full+swap:checkpoints,impl=deepspeed,prefetch=2
try -p checkpoint:full+swap:checkpoints,impl=torchtune
try -p swap:torchtune,impl=deepspeed
try -p swap:torchtune,prefetch=2
