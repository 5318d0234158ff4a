# SPDX-License-Identifier: GPL-3.0-or-later
# The choice of checkpoints as what other systems run, and what they cannot.
as() { # system, policy
    "$MEMSIM" run gpt2 -p "checkpoint:$2" --dump checkpoints --as "$1" 2>&1
}
as torch nested=6/2,early_stop=0
as torch save=aten.addmm/aten.bmm | sed -n '/^OPS/,$p'
as torch sac | sed -n '/^OPS/,/return create/p'
as torch recompute=torch.ops.aten.gelu.default | sed -n '/^OPS/,/PREFER/p'
for policy in none full every=4 every=5 each=2 layers=1/3/5 first=3 sac \
    sequential=3 sqrt chen revolve=3 modules=mlp/core_attn selective \
    save=aten.mm optimal,budget=2.6GiB recursive; do
    for system in torchtitan megatron; do
        echo "-- $policy as $system"
        as "$system" "$policy"
    done
done
for policy in modules=mlp selective full,micro_batches=0 \
    full,variant=reentrant nested=6/2,early_stop=0; do
    echo "-- $policy as torch"
    as torch "$policy" | tail -n 2
done
"$MEMSIM" run gpt2 -p checkpoint:full --dump checkpoints 2>&1
"$MEMSIM" run gpt2 -p checkpoint:full --as torch 2>&1
"$MEMSIM" run gpt2 --dump checkpoints --as torch 2>&1
"$MEMSIM" run gpt2 -p checkpoint:full --dump checkpoints --as jax 2>&1
"$MEMSIM" run gpt2 --batch 4 -p checkpoint:full+pipeline:2+microbatch:4 \
    --dump checkpoints --as megatron 2>&1

# The Python compiles, and runs each stage once, in order.  checkpoint() of a
# stand-in for torch runs its function again, as the real one would.
mkdir -p torch/utils
cat >torch/__init__.py <<'PYTHON'
class Names:
    def __getattr__(self, name):
        return Names()


ops = Names()
PYTHON
: >torch/utils/__init__.py
cat >torch/utils/checkpoint.py <<'PYTHON'
import contextlib
again = []
CheckpointPolicy = create_selective_checkpoint_contexts = None


@contextlib.contextmanager
def set_checkpoint_early_stop(stop):
    yield


def checkpoint(run, stages, x, plan, **kwargs):
    again.append(plan)
    return run(stages, x, plan)
PYTHON
cat >check.py <<'PYTHON'
import sys
from torch.utils import checkpoint
import choice
n = len(choice.STAGES)
seen = []
stages = [lambda x, i=i: seen.append(i) or x + 1 for i in range(n)]
assert choice.run(stages, 0) == n and seen == list(range(n)), seen
for plan in checkpoint.again:  # what is made again is what was checkpointed
    del seen[:]
    choice.run(stages, 0, plan)
    assert seen == list(range(plan[0][0], plan[-1][1] + 1)), (plan, seen)
PYTHON
for policy in none full every=5 each=3 layers=0/11 sqrt chen revolve=1 \
    revolve=3 nested=6/2/1 recursive,parts=3 optimal,budget=2.6GiB sac \
    save=aten.addmm recompute=aten.gelu full,early_stop=0 \
    full,variant=reentrant; do
    as torch "$policy" >choice.py
    command -v python3 >/dev/null || continue # nothing to say
    PYTHONPATH=. python3 -m py_compile choice.py || echo "$policy"
    PYTHONPATH=. python3 check.py || echo "$policy"
done
rm -rf torch __pycache__ check.py choice.py
