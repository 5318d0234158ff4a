#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What torch.optim keeps and allocates, for tests/truth/test_optimizers.c.

    /usr/bin/python3 tests/truth/optim_torch.py > tests/truth/optimizers.tsv

Linear layers take steps on a CPU.  Of the third step: the bytes of the
optimizer's state, and the highest level of what the step itself allocates
(scratch), by the allocator hook of the profiler; with a norm to clip to, the
same for clip_grad_norm_.
"""

import torch

SIZES = (300, 700, 500, 10)
MANY = (4,) * 51
HEAD = """\
# SPDX-License-Identifier: GPL-3.0-or-later
# State and scratch of torch.optim, PyTorch {version} on a CPU, fp32, the
# project's own measurement (optim_torch.py): linear layers {sizes},
# or with clip fifty of 4-4.  decay: yes with weight_decay=0.01, auto with the
# optimizer's own default.
optimizer\timpl\tdecay\tclip\tstate\tscratch\tclip_scratch"""

CASES = [
    ("sgd", torch.optim.SGD, {}),
    ("momentum", torch.optim.SGD, {"momentum": 0.9}),
    ("nesterov", torch.optim.SGD, {"momentum": 0.9, "nesterov": True}),
    ("adagrad", torch.optim.Adagrad, {}),
    ("rmsprop", torch.optim.RMSprop, {}),
    ("rmsprop-momentum", torch.optim.RMSprop, {"momentum": 0.9}),
    ("rmsprop-centered", torch.optim.RMSprop, {"centered": True}),
    ("rmsprop-centered-momentum", torch.optim.RMSprop,
     {"centered": True, "momentum": 0.9}),
    ("adam", torch.optim.Adam, {}),
    ("adamw", torch.optim.AdamW, {}),
    ("adam-amsgrad", torch.optim.Adam, {"amsgrad": True}),
    ("adamw-amsgrad", torch.optim.AdamW, {"amsgrad": True}),
]


def allocations(event, found):
    if "Allocation" in str(event.tag):
        fields = event.extra_fields
        found.append((event.start_time_ns, fields.alloc_size))
    for child in event.children:
        allocations(child, found)


def highest(run):
    with torch.profiler.profile(profile_memory=True) as profile:
        run()
    found = []
    tree = profile.profiler.kineto_results.experimental_event_tree()
    for event in tree:
        allocations(event, found)
    level = peak = 0
    for _, size in sorted(found, key=lambda row: row[0]):
        level += size
        peak = max(peak, level)
    return peak


def state_bytes(optimizer):
    """Of tensors, momentum buffers not yet there included."""
    return sum(value.numel() * value.element_size()
               for state in optimizer.state.values()
               for value in state.values()
               if isinstance(value, torch.Tensor))


def measure(make, options, foreach, clips):
    torch.manual_seed(0)
    sizes = MANY if clips else SIZES
    layers = [torch.nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])]
    model = torch.nn.Sequential(*layers)
    optimizer = make(model.parameters(), lr=1e-3, foreach=foreach, **options)
    x = torch.ones(8, sizes[0])

    def backward():
        optimizer.zero_grad(set_to_none=True)
        model(x).mean().backward()

    def clip():
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)

    for _ in range(2):
        backward()
        optimizer.step()
    backward()
    clipped = highest(clip) if clips else 0
    return state_bytes(optimizer), highest(optimizer.step), clipped


def main():
    torch.set_num_threads(1)
    print(HEAD.format(version=torch.__version__,
                      sizes="-".join(str(size) for size in SIZES)))
    for decay, more in ("auto", {}), ("yes", {"weight_decay": 0.01}):
        for name, make, options in CASES:
            for impl in "loop", "foreach":
                row = measure(make, options | more, impl == "foreach", False)
                print(name, impl, decay, 0, *row, sep="\t")
    print("sgd", "loop", "auto", 1, *measure(torch.optim.SGD, {}, False, True),
          sep="\t")


if __name__ == "__main__":
    main()
