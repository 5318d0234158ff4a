# SPDX-License-Identifier: GPL-3.0-or-later
# What no implementation does.
exec 2>&1
for bad in schedule=zb-h1,impl=megatron schedule=dualpipe,impl=megatron \
    impl=torch,deallocate=1 impl=deepspeed deallocate=2 deallocate=yes; do
    "$MEMSIM" run tiny16.json -p "pipeline:2,$bad+microbatch:4" --batch 4
    echo "status $?"
done
