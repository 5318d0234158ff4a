#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The op graphs of whole networks and their measured steps, for
tests/truth/test_nets.c and torch.c.  PyTorch 1.13 with torchvision 0.14.

    /usr/bin/python3 tests/truth/nets_torch.py graphs > tests/truth/nets.jsonl
    /usr/bin/python3 tests/truth/nets_torch.py steps > tests/truth/torch.jsonl
    /usr/bin/python3 tests/truth/nets_torch.py measure > tests/truth/nets.tsv
    /usr/bin/python3 tests/truth/nets_torch.py builtins > tests/truth/vision.tsv

A step is measured by the profiler's memory events of the second one, in order.
What is allocated and freed within one op is a library's workspace and left out.
"""

import gc
import sys

import torch
from torch.profiler import ProfilerActivity, profile

from nets_models import BUILTINS, CHECKPOINTED, MEASURED, NETS
from rules_torch import compact, measure_saved, memory_events
import export_torch

HEAD = """\
# Steps of whole networks measured with PyTorch 1.13.1 (CPU, fp32, one thread,
# SGD) by nets_torch.py: the project's own measurements.  Columns as in
# opgraphs.tsv; the graphs are the lines of nets.jsonl.
case\tstatic_bytes\tsaved_bytes\tlive_after_fwd_rel\tlive_after_loss_rel\t\
live_after_bwd_rel\tbwd_peak_rel_no_ws\tfwd_peak_rel_no_ws\tallocations\thash"""
BUILTIN_NAMES = ('opgraphs.tsv.  NAME_bBATCH; s: sequence, w, l: "width", '
                 '"latent" of its config.')
RECURRENT = {"aten::lstm", "aten::gru", "aten::rnn_tanh"}
WORTH_A_LOOK = 1024  # bytes; what is smaller are scalars
# A tensor of so many bytes is allocated and freed where a phase begins.
MARKS = {1000003: "forward", 1000033: "loss", 1000037: "backward",
         1000039: "end"}


def make(case):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, inputs, loss, target = {**NETS, **CHECKPOINTED, **MEASURED, **BUILTINS}[case]()
    if isinstance(inputs, torch.Tensor):
        inputs = (inputs,)
    return model, inputs, loss, target


def mark(phase):
    size = next(size for size, name in MARKS.items() if name == phase)
    torch.empty(size, dtype=torch.uint8)


def step(model, inputs, loss, target, optimizer):
    """`out` and `value` are alive until the backward is over."""
    optimizer.zero_grad(set_to_none=True)
    mark("forward")
    out = model(*inputs)
    mark("loss")
    value = loss(out, target)
    mark("backward")
    value.backward()
    mark("end")


def profiled(*arguments):
    with profile(activities=[ProfilerActivity.CPU],
                 profile_memory=True) as result:
        step(*arguments)
    found = []
    for event in result.profiler.kineto_results.experimental_event_tree():
        memory_events(event, [], found)
    return found


def is_workspace(born, died):
    """Did both happen within one op?  Recurrent layers are many."""
    common = [a[1] for a, b in zip(born, died) if a == b]
    return (bool(common) and common[-1].startswith("aten::")
            and common[-1] not in RECURRENT)


def events_of(found):
    """[phase, +-bytes] of what is no workspace, marks taken out."""
    phase, alive, events = None, {}, []
    for size, address, path in found:
        if size in MARKS:
            phase = MARKS[size]
        if abs(size) in MARKS:
            continue
        if size > 0:
            alive[address] = len(events), path
        elif address in alive:
            born, birth = alive.pop(address)
            if is_workspace(birth, path):
                events[born] = None
                continue
        events.append((phase, size))
    return [event for event in events if event]


def fold(events):
    """The levels, relative to the first forward, and the hash of backward."""
    level = dict.fromkeys(MARKS.values(), 0)
    peak = dict.fromkeys(MARKS.values(), 0)
    now, number, value = 0, 0, 0xcbf29ce484222325
    for phase, size in events:
        if phase is None:
            continue
        now += size
        level[phase] = now
        peak[phase] = max(peak[phase], now)
        if phase == "backward" and size >= WORTH_A_LOOK:
            number += 1
            for byte in f"{size}\n".encode():
                value = (value ^ byte) * 0x100000001b3 % 2 ** 64
    return (level["forward"], level["loss"], level["backward"],
            peak["backward"], max(peak["forward"], peak["loss"]), number,
            value)


def static_bytes(model, inputs, target):
    sizes = {export_torch.storage_of(tensor)
             for tensor in [*model.parameters(), *model.buffers(), *inputs,
                            target]}
    return sum(size for _, size in sizes)


def measure(case):
    model, inputs, loss, target = make(case)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(trained, 1e-4, foreach=False)
    arguments = model, inputs, loss, target, optimizer
    step(*arguments)
    gc.collect()
    gc.disable()
    events = events_of(profiled(*arguments))
    gc.enable()
    saved = measure_saved(Whole(model, loss), (*inputs, target))
    return static_bytes(model, inputs, target), saved, *fold(events)


class Whole(torch.nn.Module):
    """Model and loss; the last input is the target."""

    def __init__(self, model, loss):
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, *inputs):
        return self.loss(self.model(*inputs[:-1]), inputs[-1])


def record(case):
    return compact(export_torch.export(*make(case), case=case))


def record_step(case):
    """Its batch counts, its blocks do not."""
    document = export_torch.export(*make(case), case=case)
    batch = document["meta"]["batch"]
    for node in compact(document)["nodes"]:
        node.pop("mod", None)
    document["meta"] = {"batch": batch}
    return document


def main():
    what = sys.argv[1:]
    if what == ["measure"]:
        print(HEAD)
        for case in [*NETS, *CHECKPOINTED]:
            print(case, *measure(case), sep="\t")
    elif what == ["builtins"]:
        print(HEAD.replace("opgraphs.tsv; the graphs are the lines of "
                           "nets.jsonl.", BUILTIN_NAMES))
        for case in BUILTINS:
            print(case, *measure(case), sep="\t", flush=True)
    elif what == ["graphs"]:
        for case in NETS:
            print(export_torch.dump(record(case)))
    elif what == ["steps"]:
        for case in MEASURED:
            print(export_torch.dump(record_step(case)))
    else:
        sys.exit("nets_torch.py: graphs, steps, measure or builtins")


if __name__ == "__main__":
    main()
