#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole recorded GPU steps against memsim, allocation by allocation.

    /usr/bin/python3 tests/truth/gpu_steps.py MEMSIM TRUTH/gpu [CASE...]

Each model is exported at its real size (models_torch.py, on the meta device),
simulated for the GPU of the trace, and its events are held against the trace:
per phase the bytes of all allocations in order, the order of frees between
them, the level at the end, and the peak with its op.  A difference must be
one of DIFFERENCES.
"""

import csv
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "tools")]
sys.dont_write_bytecode = True

import export_torch  # noqa: E402
import models_torch  # noqa: E402

MEDIUM = (24, 1024, 16, 4096, 10000)
SMALL = (12, 768, 12, 3072, 10000)
LARGE = (32, 2560, 32, 10240, 10000)
OLD = "--device a100-40gb-sxm"  # any GPU before sm_90
H100 = "--device h100-80gb-sxm"
INFER = "--set training.mode=inference"
BF16 = "--precision autocast-bf16"
TRAIN = "--optimizer adamw --set training.hold_output=step"
FIRST = f"{TRAIN} --set training.step=first"

# case: model, sizes, tokens, options, phases that the trace has
CASES = {
    "Wedsonlin_medium_128_train": (
        "basics", MEDIUM, 128, f"{OLD} {TRAIN}", "flb"),
    "Wedsonlin_medium_256_train": (
        "basics", MEDIUM, 256, f"{OLD} {TRAIN}", "flb"),
    "Wedsonlin_medium_1024_train": (
        "basics", MEDIUM, 1024, f"{OLD} {BF16} {TRAIN}", "flb"),
    "Wedsonlin_medium_128_infer": (
        "basics", MEDIUM, 128, f"{OLD} {INFER}", "f"),
    "Wedsonlin_medium_256_infer": (
        "basics", MEDIUM, 256, f"{OLD} {INFER}", "f"),
    "Wedsonlin_medium_512_infer": (
        "basics", MEDIUM, 512, f"{OLD} {INFER} {BF16}", "f"),
    "Charan6924_small_512_nograd": (
        "basics", SMALL, 512, f"{OLD} {INFER}", "f"),
    "kkaitlyn111_2.7b_128_full": ("kait", LARGE, 128, f"{H100} {FIRST}", "flb"),
    "kkaitlyn111_2.7b_512_full": ("kait", LARGE, 512, f"{H100} {TRAIN}", "flb"),
    "kkaitlyn111_2.7b_128_fwd": ("kait", LARGE, 128, H100, "f"),
    "kkaitlyn111_2.7b_512_fwd": ("kait", LARGE, 512, H100, "f"),
    "kkaitlyn111_2.7b_128_fwd_bf16": (
        "kait", LARGE, 128, f"{H100} {BF16}", "f"),
    "kkaitlyn111_2.7b_512_fwd_bf16": (
        "kait", LARGE, 512, f"{H100} {BF16}", "f"),
}
PHASES = {"f": "forward", "l": "loss", "b": "backward"}
PASSES = {
    "forward": "forward", "loss": "loss", "grad_input": "backward",
    "grad_weight": "backward", "accumulate": "backward",
}


class Step:
    """Allocations and frees by phase, levels above the start."""

    def __init__(self):
        self.events = {name: [] for name in PHASES.values()}
        self.end, self.peak = {}, {}
        self.level = 0

    def add(self, phase, change, label):
        self.level += change
        if phase not in self.events:
            return
        self.events[phase].append((change, label))
        self.end[phase] = self.level
        if self.level > self.peak.get(phase, (0, ""))[0]:
            self.peak[phase] = (self.level, label)

    def allocations(self, phase):
        return [event for event in self.events[phase] if event[0] > 0]


def recorded(path):
    """The step of a trace."""
    with open(path, encoding="utf-8") as file:
        case = json.load(file)
    step = Step()
    sizes = [case["sizes"][i] for i in case["pre"]]
    step.start = sum(sizes)
    starts = dict((first, name) for name, first in reversed(case["phases"]))
    phase, made = None, 0
    for i, event in enumerate(case["ev"]):
        phase = starts.get(i, phase)
        if event >= 0:
            op, kind = case["ops"][case["op"][made]], case["cls"][made]
            sizes.append(case["sizes"][event])
            made += 1
            step.add(phase, sizes[-1], f"{op} {kind}")
        else:
            step.add(phase, -sizes[-1 - event], "free")
    return step


def simulated(memsim, graph, options):
    """The step of memsim."""
    run = subprocess.run(
        [memsim, "run", graph, "--dump", "events", *options.split()],
        stdout=subprocess.PIPE, check=True, text=True)
    step = Step()
    for row in csv.DictReader(run.stdout.splitlines()):
        change = int(row["bytes"])
        if row["pass"] == "start":
            step.start = int(row["allocated_bytes"])
            continue
        label = f'{row["op"]} {row["layer"]} {row["storage"]}'
        step.add(PASSES.get(row["pass"]),
                 change if row["action"] == "alloc" else -change, label)
    return step


def export(model, sizes, tokens, path):
    build = getattr(models_torch, model + "_step")
    export_torch.export(*build(*sizes, tokens), path=path)


def show(name, what, truth, memsim):
    print(f"{name}: {what}: recorded {truth}, memsim {memsim}")
    return 1


def compare_order(name, phase, truth, memsim):
    a, b = truth.allocations(phase), memsim.allocations(phase)
    for i, (x, y) in enumerate(zip(a, b)):
        if x[0] != y[0]:
            return show(name, f"{phase} allocation {i}", x, y)
    if len(a) != len(b):
        return show(name, f"{phase} allocations", len(a), len(b))
    return 0


def compare(name, phases, truth, memsim):
    wrong = 0
    if truth.start != memsim.start:
        wrong += show(name, "start", truth.start, memsim.start)
    for letter in phases:
        phase = PHASES[letter]
        wrong += compare_order(name, phase, truth, memsim)
        if truth.end[phase] != memsim.end[phase]:
            wrong += show(name, f"level after {phase}", truth.end[phase],
                          memsim.end[phase])
        if truth.peak[phase][0] != memsim.peak[phase][0]:
            wrong += show(name, f"peak of {phase}", truth.peak[phase],
                          memsim.peak[phase])
    return wrong


def main():
    memsim, folder = sys.argv[1:3]
    wrong = 0
    with tempfile.TemporaryDirectory() as scratch:
        graph = os.path.join(scratch, "step.graph.json")
        for name in sys.argv[3:] or CASES:
            model, sizes, tokens, options, phases = CASES[name]
            export(model, sizes, tokens, graph)
            truth = recorded(os.path.join(folder, "cases", f"{name}.json"))
            here = compare(name, phases, truth,
                           simulated(memsim, graph, options))
            n = sum(len(truth.allocations(PHASES[p])) for p in phases)
            print(f"{name}: {n} allocations, "
                  f"{here} differences" if here else f"{name}: {n} equal")
            wrong += here
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
