#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
r"""The op graphs of the per-op experiments, for tests/truth/test_rules.c.

    /usr/bin/python3 tests/truth/rules_torch.py > tests/truth/rules.jsonl
    /usr/bin/python3 tests/truth/rules_torch.py RULES.json \
        > tests/truth/rules.tsv

Every result that has a gradient is
multiplied by an input of its shape and summed, so that a dense gradient
arrives; these last ops are the loss, which the test leaves out.  One line per
experiment: the file that tools/export_torch.py writes, without what memsim
does not read.

With an argument, truth/torch/rules.json, it writes what was measured as a
table, and measures the other experiments for it.
"""

import json
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "tools"))
import export_torch  # noqa: E402
from rules_cases import CASES, MORE, Experiment  # noqa: E402


def tensors(outputs):
    if isinstance(outputs, torch.Tensor):
        outputs = [outputs]
    return [out for out in outputs if out.requires_grad]


def weigh(outputs, weights):
    sums = [(out * weight).sum()
            for out, weight in zip(tensors(outputs), weights)]
    loss = sums[0]
    for value in sums[1:]:
        loss = loss + value
    return loss


def compact(document):
    """What memsim reads of it."""
    document["format"] = "op graph"
    del document["meta"]
    for node in document["nodes"]:
        del node["prod"], node["id"]
        for key, plain in ("overload", "default"), ("mod", ""), ("flops", 0):
            if node[key] == plain:
                del node[key]
    return document


def model_of(name, body, shapes):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    return Experiment(body, shapes, copies=name in MORE)


def record(name, body, shapes, *inputs):
    model = model_of(name, body, shapes)
    weights = [torch.ones_like(out) for out in tensors(model(*inputs))]
    return compact(export_torch.export(model, inputs, weigh, weights,
                                       case=name))


# ---- what was measured

HEAD = """\
# Per-op experiments with PyTorch 1.13.1 (CPU, fp32), the project's own
# measurements: those of truth/torch/rules.json, then those of rules_torch.py.
# graph: which one of rules.jsonl.  saved: bytes of the storages that ops made
# and autograd keeps.  backward: its allocations of 65 bytes or more in order,
# without the clones that leaves make of shared gradients; w: a kernel's
# scratch, gone when it ends.
case\tgraph\tsaved\tbackward"""
SMALL = 65


def saved_bytes(experiment):
    """What is written in place is made by an op: leaves refuse it."""
    return sum({block: size for name, _, _, size, _, block
                in experiment["saved"]
                if block >= 0 or name == "input0=output0"}.values())


def allocations(experiment):
    nested = experiment["bwd"][0][0] == "CheckpointFunctionBackward"
    found = []
    for node, events in experiment["bwd"]:
        if node == "AccumulateGrad":
            continue
        freed_in = {event[4]: event[2] for event in events
                    if event[0] == "-"}
        for sign, size, _, fate, block in events:
            if sign == "+" and size >= SMALL:
                kernel = freed_in.get(block, "")
                scratch = (fate == "tmp" and kernel
                           and "Backward" not in kernel)
                found.append(f"{size}{'w' * bool(scratch)}")
        if nested:
            break  # its inner nodes are listed again
    return " ".join(found) or "-"


# ---- what is measured here


def inputs_of(model, inputs):
    """The storages that no op makes."""
    return {export_torch.storage_of(tensor)[0]
            for tensor in [*model.parameters(), *model.buffers(), *inputs]
            if isinstance(tensor, torch.Tensor)}


def measure_saved(model, inputs):
    outside, saved, kept = inputs_of(model, inputs), {}, []

    def pack(tensor):
        storage, size = export_torch.storage_of(tensor)
        if storage not in outside:
            saved[storage] = size
        kept.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda kept: kept):
        model(*inputs)
    return sum(saved.values())


def memory_events(event, path, found):
    """(size, address, ops around it) for each allocation and free."""
    if "Allocation" in str(event.tag):
        fields = event.extra_fields
        found.append((fields.alloc_size, fields.ptr, path))
    for child in event.children:
        memory_events(child, path + [(id(event), event.name)], found)


def kernels(path):
    """The ops within an autograd node."""
    return {step for step in path if step[1].startswith("aten::")}


def measure_backward(model, inputs):
    outputs = tensors(model(*inputs))
    weights = [torch.ones_like(out) for out in outputs]
    with torch.profiler.profile(profile_memory=True) as profile:
        torch.autograd.backward(outputs, weights)
    found = []
    result = profile.profiler.kineto_results
    for event in result.experimental_event_tree():
        memory_events(event, [], found)
    words, ends = [], {}  # ends: address -> ops around its next free
    for size, address, path in reversed(found):
        if size < 0:
            ends[address] = path
            continue
        node = [name for _, name in path if "evaluate_function" in name]
        if size < SMALL or not node or "AccumulateGrad" in node[0]:
            continue
        scratch = kernels(path) & kernels(ends.get(address, []))
        words.insert(0, f"{size}{'w' * bool(scratch)}")
    return " ".join(words) or "-"


def measure(name, body, shapes, *inputs):
    model = model_of(name, body, shapes)
    return measure_saved(model, inputs), measure_backward(model, inputs)


# ---- the tables


def write_table(path):
    print(HEAD)
    with open(path, encoding="utf-8") as file:
        for experiment in json.load(file):
            case = experiment["op"]
            graph = case.replace(" (no mkldnn)", "")
            for variant in " reentrant", " non-reentrant":
                graph = graph.removesuffix(variant)
            print(case, graph, saved_bytes(experiment),
                  allocations(experiment), sep="\t")
    for case, parts in MORE.items():
        print(case, case, *measure(case, *parts), sep="\t")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        write_table(sys.argv[1])
        sys.exit()
    for case, parts in {**CASES, **MORE}.items():
        print(export_torch.dump(record(case, *parts)))
