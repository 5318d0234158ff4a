# SPDX-License-Identifier: GPL-3.0-or-later
"""A recorded step and memsim's own through one pool: both as traces of memsim
alloc, from an empty pool on, so that only their order and sizes count.

The workspaces that cuBLAS keeps come first in both: a process that has worked
before has them at the start, a first step makes them at its first products.
"""

import json
import subprocess

LIBRARY = (8519680, 33554432)


class Trace:
    """Lines of a trace; what cuBLAS keeps apart."""

    def __init__(self):
        self.lines, self.first = [], []

    def allocate(self, identity, size, keeps):
        if size > 0:
            lines = self.first if keeps else self.lines
            lines.append(f"a {identity} {size}")

    def free(self, identity, size):
        if size > 0:
            self.lines.append(f"f {identity}")


def of_recording(path, optimizer):
    """All of a recording, or what comes before its optimizer."""
    with open(path, encoding="utf-8") as file:
        case = json.load(file)
    events = case["ev"]
    for phase, first in case["phases"]:
        if phase == "optimizer" and not optimizer:
            events = events[:first]
    trace = Trace()
    sizes = [case["sizes"][i] for i in case["pre"]]
    before = len(sizes)
    for identity, size in enumerate(sizes):
        trace.allocate(identity, size, size in LIBRARY)
    for event in events:
        if event < 0:
            trace.free(-1 - event, sizes[-1 - event])
            continue
        op = case["ops"][case["op"][len(sizes) - before]]
        keeps = op.upper().startswith("CUBLAS_WORKSPACE")
        sizes.append(case["sizes"][event])
        trace.allocate(len(sizes) - 1, sizes[-1], keeps)
    return trace


def of_plan(memsim, graph, options, optimizer):
    """The same of memsim's step."""
    run = subprocess.run(
        [memsim, "run", graph, "--dump", "plan", *options.split()],
        stdout=subprocess.PIPE, check=True, text=True)
    trace, sizes = Trace(), {}
    for line in run.stdout.splitlines():
        words = line.split()
        if words[0] == "op" and words[2] == "step" and not optimizer:
            break
        if words[0] == "+":
            sizes[words[2]] = int(words[5])
            trace.allocate(words[2], int(words[5]),
                           words[3].endswith(":cublas_workspace"))
        elif words[0] == "-":
            trace.free(words[2], sizes[words[2]])
    return trace


def reserve(memsim, trace, version):
    """Bytes reserved at most; at the end segments, and bytes idle in them."""
    run = subprocess.run(
        [memsim, "alloc", "-", "--memory", "1TiB", "--json", "--allocator",
         f"torch,version={version},va=down"],
        input="\n".join(trace.first + trace.lines) + "\n",
        stdout=subprocess.PIPE, check=True, text=True)
    stats = json.loads(run.stdout)["allocators"][0]["stats"]
    return (stats["reserved_bytes.all"]["peak"],
            stats["segment.all"]["current"],
            stats["inactive_split_bytes.all"]["current"])
