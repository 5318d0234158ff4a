#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole recorded GPU steps against memsim, allocation by allocation.

    /usr/bin/python3 tests/truth/gpu_steps.py MEMSIM TRUTH/gpu [CASE...]

Each model is exported at its real size (models_torch.py, on the meta device),
simulated for the GPU of the trace, and its plan is held against the trace: per
phase the bytes of all allocations in order, what is freed after each of them,
the level at the end and the peak; where cuBLAS takes its workspaces.  What
differs must do so by what DIFFERENCES says.

What PyTorch's allocator reserves is compared twice: memsim run's with the
recorded number, and, where a step has a backward, all that the recorded step
and memsim's allocate and free, from an empty pool on (gpu_pool.py).

The optimizers of the traces are written by hand: of kait's, which works as
torch's loop does, the peak is compared, of the others nothing.  Left out are
silmont2000_small_128_*, a model whose code is not public, and
cranberrii_tinyllama_qlora_1000, whose 4-bit linears are custom autograd
functions: they make the fp16 and fp32 weights anew in backward, which a graph
of aten ops cannot say.
"""

import fnmatch
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "tools")]
sys.dont_write_bytecode = True

import export_torch  # noqa: E402
import gpu_pool  # noqa: E402
import models_torch  # noqa: E402

MEDIUM = (24, 1024, 16, 4096, 10000)
SMALL = (12, 768, 12, 3072, 10000)
LARGE = (32, 2560, 32, 10240, 10000)
OLD = "--device a100-40gb-sxm"  # any GPU before sm_90
H100 = "--device h100-80gb-sxm"
INFER = "--set training.mode=inference"
BF16 = "--precision autocast-bf16"
FIRST = "--set training.step=first"
LOOP = "--set training.optimizer_impl=loop"
TRAIN = "--optimizer adamw --set training.hold_output=step"
FORWARD = "--optimizer none"
KEEP = "--optimizer sgd --set training.hold_output=step"

# Each case has a model, sizes, tokens, options and the phases of its trace.
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
    "kkaitlyn111_2.7b_128_full": (
        "kait", LARGE, 128, f"{H100} {TRAIN} {FIRST} {LOOP}", "flbs"),
    "kkaitlyn111_2.7b_512_full": (
        "kait", LARGE, 512, f"{H100} {TRAIN} {FIRST} {LOOP}", "flbs"),
    "kkaitlyn111_2.7b_128_fwd": (
        "kait", LARGE, 128, f"{H100} {FORWARD}", "f"),
    "kkaitlyn111_2.7b_512_fwd": (
        "kait", LARGE, 512, f"{H100} {FORWARD}", "f"),
    "kkaitlyn111_2.7b_128_fwd_bf16": (
        "kait", LARGE, 128, f"{H100} {FORWARD} {BF16}", "f"),
    "kkaitlyn111_2.7b_512_fwd_bf16": (
        "kait", LARGE, 512, f"{H100} {FORWARD} {BF16}", "f"),
    "silmont2000_attention_8x4096x16": (
        "attention", (8, 4096, 16), None, f"{OLD} {KEEP}", "flb"),
    "JasperSolt_cnn_adam_cf": (
        "convolutions", (256,), None,
        f"--device t4 --framework torch-2.0 {KEEP}", "fb"),
}
PASSES = {"Charan6924_small_512_nograd": 5}  # of which the first is compared
# The second of its ten steps, and the order only: its levels hold what the
# script prints and what anomaly detection and cuDNN take.
SECOND = ("JasperSolt_cnn_adam_cf",)

# case, quantity, recorded minus memsim, why.  Library workspaces are no part
# of the quantities.
DIFFERENCES = [
    ("Wedsonlin_medium_*_train", "start", lambda tokens: 2 * 5 * 32 * tokens,
     "the script keeps the inputs and targets of five steps"),
    ("Wedsonlin_medium_*_infer", "start", lambda tokens: 4 * 32 * tokens,
     "the script keeps the inputs of five steps; there is no target"),
    ("Charan6924_*", "start", lambda tokens: -32 * tokens,
     "there is no target"),
    ("Wedsonlin_medium_*_infer", "level after forward",
     lambda tokens: -4 * 10000 * tokens * (2 if tokens == 512 else 4),
     "the script drops the logits, an op graph goes on to its loss"),
    ("Charan6924_*", "level after forward",
     lambda tokens: -4 * 10000 * tokens * 4,
     "the script drops the logits, an op graph goes on to its loss"),
]
# By case and phase: how many allocations are followed by other frees, and why.
ROWS = [
    ("*_infer", "forward", 1, "the script's variables end with the forward"),
    ("*_nograd", "forward", 1, "the script's variables end with the forward"),
    ("*_full", "backward", 2,
     "index_put_ keeps its linear index in the copy of the row numbers"),
]
WORKSPACES = ("CUBLAS_WORKSPACE", "cublas_workspace", "CUBLASLT_WS",
              "aten::addmm:workspace")
# cuDNN takes what the algorithm that it chose needs; anomaly detection looks
# for NaN in each gradient.
OTHERS = ("onvolution workspace", "onvolution_backward workspace", "engine:")
# The rows by which kait's loss picks its targets are numbered on the CPU and
# copied to the GPU by each op that reads them; an op graph is of one device.
ROW_NUMBERS = ("index_Tensor/to_dtype_layout",
               "_index_put_impl_/to_dtype_layout", "loss aten::arange:out")

PHASES = {"f": "forward", "l": "loss", "b": "backward", "s": "optimizer"}
PHASE_OF = {
    "forward": "forward", "loss": "loss", "grad_input": "backward",
    "grad_weight": "backward", "accumulate": "backward", "step": "optimizer",
}


class Step:
    """What a step allocates and frees, by phase, above its start."""

    def __init__(self):
        self.start = self.level = 0
        self.rows = {phase: [] for phase in PHASES.values()}
        self.end = dict.fromkeys(self.rows, 0)
        self.peak = dict.fromkeys(self.rows, (0, ""))
        self.workspaces = set()  # phase, after how many allocations, bytes
        self.made = set()

    def allocate(self, phase, identity, size, label):
        if phase == "setup":
            self.start += size
        if phase not in self.rows:
            return
        if any(name in label for name in WORKSPACES):
            self.workspaces.add((phase, len(self.rows[phase]), size))
            return
        if size == 0 or any(name in label for name in ROW_NUMBERS + OTHERS):
            return
        self.made.add(identity)
        self.rows[phase].append((size, [], label))
        self.level += size
        self.end[phase] = self.level
        if self.level > self.peak[phase][0]:
            self.peak[phase] = (self.level, label)

    def free(self, phase, identity, size):
        if phase not in self.rows or identity not in self.made:
            return
        self.level -= size
        self.end[phase] = self.level
        if self.rows[phase]:
            self.rows[phase][-1][1].append(size)


def one_step(case, name):
    """The events of the trace that are compared: (phase, event) each."""
    starts = dict((first, phase) for phase, first in case["phases"])
    passes = PASSES.get(name, 1)
    inside = sum(event >= 0 for event in case["ev"]) // passes
    phase, made, forwards = None, 0, 0
    for i, event in enumerate(case["ev"]):
        if i in starts:
            phase = starts[i]
            forwards += phase == "forward"
        made += event >= 0
        if passes > 1 and made > inside + 1:
            return
        other = name in SECOND and forwards != 2
        yield (None if other else phase), event


def recorded(path, name):
    """The step of a trace."""
    with open(path, encoding="utf-8") as file:
        case = json.load(file)
    step = Step()
    sizes = [case["sizes"][i] for i in case["pre"]]
    workspaces = [size for size in sizes if size in (8519680, 33554432)]
    step.start = sum(sizes) - sum(workspaces)
    before, label = len(sizes), ""
    for phase, event in one_step(case, name):
        if event < 0:
            step.free(phase, -1 - event, sizes[-1 - event])
            continue
        op = case["ops"][case["op"][len(sizes) - before]]
        sizes.append(case["sizes"][event])
        # A convolution's second allocation is its workspace.
        second = op == label and "onvolution" in op
        label = op
        step.allocate(phase, len(sizes) - 1, sizes[-1],
                      op + " workspace" if second else op)
    return step


def simulated(memsim, graph, options):
    """The step of memsim, from its plan."""
    run = subprocess.run(
        [memsim, "run", graph, "--dump", "plan", *options.split()],
        stdout=subprocess.PIPE, check=True, text=True)
    step, phase, op, layer, sizes = Step(), None, "", "", {}
    for line in run.stdout.splitlines():
        words = line.split()
        if words[0] == "op":
            phase = PHASE_OF.get(words[2], words[2])
            op, layer = words[3], " ".join(words[4:words.index("micro")])
            continue
        if words[0] == "+":
            row, name, category, size = words[2:6]
            sizes[row] = int(size)
            if phase == "start" and category != "workspace":
                step.start += int(size)
            label = f"{phase} {op}:{name.rpartition(':')[2]} {layer}"
            step.allocate(phase, row, int(size), label)
        elif words[0] == "-":
            step.free(phase, words[2], sizes[words[2]])
    return step


def export(model, sizes, tokens, path):
    build = getattr(models_torch, model + "_step")
    sizes = sizes if tokens is None else (*sizes, tokens)
    export_torch.export(*build(*sizes), path=path)


# What a trace's process reserves, with PyTorch's allocator of its version:
# those that end with a forward pass, when that ends in a first step; the steps
# whose optimizer is compared, at their end.  Recorded minus memsim and why.
VERSIONS = {"kkaitlyn111_*": "2.4", "*": "2.11"}
RESERVED = {
    "kkaitlyn111_2.7b_512_full": (
        -65011712, "the process has worked before, its cuBLAS workspaces are "
                   "there at the start: from an empty pool the recorded step "
                   "itself reserves 203423744 more than was recorded"),
}


def version_of(name):
    return next(VERSIONS[case] for case in VERSIONS
                if fnmatch.fnmatch(name, case))


def reserved(memsim, graph, name):
    """The highest reserved bytes of the phases that the trace has."""
    options, phases = CASES[name][3:]
    words = [memsim, "run", graph, *options.split(), *FIRST.split(),
             "--memory", "1TiB",
             "--allocator", f"torch,version={version_of(name)}"]
    run = subprocess.run([*words, "--json"], stdout=subprocess.PIPE, check=True)
    result = json.loads(run.stdout)
    if phases != "f":
        return result["peak"]["reserved_bytes"]
    run = subprocess.run([*words, "--csv", "-"], stdout=subprocess.PIPE,
                         check=True, text=True)
    loss_ns = next(int(line.split(",")[1]) for line in run.stdout.splitlines()
                   if line.split(",")[3] == "loss")
    points = result["timeline"]["ranks"][0]["points"]["rows"]
    # A point's reserved bytes are those of the time when it ends.
    return max(point[1] for point, after in zip(points, points[1:])
               if after[0] <= loss_ns)


class Comparison:
    """Counts what is not as expected and says the first of each kind."""

    def __init__(self, name, tokens):
        self.name, self.tokens, self.wrong = name, tokens, 0

    def number(self, what, truth, memsim):
        expected = 0
        for case, quantity, difference, _why in DIFFERENCES:
            if fnmatch.fnmatch(self.name, case) and quantity == what:
                expected = difference(self.tokens)
        if truth - memsim != expected:
            self.say(what, truth, f"{memsim}, expected {expected} between")

    def rows(self, phase, truth, memsim):
        if len(truth) != len(memsim):
            self.say(f"{phase} allocations", len(truth), len(memsim))
        different = [i for i, (a, b) in enumerate(zip(truth, memsim))
                     if a[0] != b[0] or sorted(a[1]) != sorted(b[1])]
        expected = sum(n for case, where, n, _why in ROWS
                       if fnmatch.fnmatch(self.name, case) and where == phase)
        if len(different) != expected:
            first = (different or [0])[0]
            self.say(f"{phase} allocation {first} and frees, the first of "
                     f"{len(different)}", truth[first], memsim[first])

    def reserves(self, folder, memsim, graph):
        """Holds reserved memory against the trace's, if it tells of it."""
        with open(os.path.join(folder, "truth.json"), encoding="utf-8") as file:
            rows = {row["case"]: row for row in json.load(file)}
        truth = rows[self.name].get("reserved_end")
        if CASES[self.name][4] not in ("f", "flbs") or not truth:
            return
        found = reserved(memsim, graph, self.name)
        expected, _why = RESERVED.get(self.name, (0, ""))
        if truth - found != expected:
            self.say("reserved", truth, f"{found}, expected {expected} between")

    def pools(self, path, memsim, graph):
        """Holds the step in a pool against the recorded one; what it says."""
        options, phases = CASES[self.name][3:]
        if "b" not in phases or self.name in SECOND:
            return ""
        version, optimizer = version_of(self.name), "s" in phases
        truth = gpu_pool.reserve(
            memsim, gpu_pool.of_recording(path, optimizer), version)
        found = gpu_pool.reserve(
            memsim, gpu_pool.of_plan(memsim, graph, options, optimizer),
            version)
        for what, here, there in zip(("reserved", "segments"), truth, found):
            if here != there:
                self.say(f"{what}, from an empty pool", here, there)
        return (f"; {found[0]} bytes reserved in {found[1]} segments as the "
                f"recorded step has, {found[2]} idle in split ones "
                f"({truth[2]})")

    def say(self, what, truth, memsim):
        self.wrong += 1
        print(f"{self.name}: {what}: recorded {truth}, memsim {memsim}")


def compare(name, memsim, graph, folder):
    _model, _sizes, tokens, options, phases = CASES[name]
    truth = recorded(os.path.join(folder, "cases", f"{name}.json"), name)
    step = simulated(memsim, graph, options)
    result = Comparison(name, tokens)
    for letter in phases:
        phase = PHASES[letter]
        if letter != "s":
            result.rows(phase, truth.rows[phase], step.rows[phase])
        if name in SECOND:
            continue
        result.number("start", truth.start, step.start)
        if letter != "s":
            result.number(f"level after {phase}", truth.end[phase],
                          step.end[phase])
        result.number(f"peak of {phase}", truth.peak[phase][0],
                      step.peak[phase][0])
    if truth.workspaces:
        first = simulated(memsim, graph, f"{options} {FIRST}")
        if not truth.workspaces <= first.workspaces:
            result.say("workspaces", truth.workspaces, first.workspaces)
    result.reserves(folder, memsim, graph)
    pools = result.pools(os.path.join(folder, "cases", f"{name}.json"),
                         memsim, graph)
    n = sum(len(truth.rows[PHASES[letter]]) for letter in phases
            if letter != "s")
    print(f"{name}: {n} allocations, "
          + (f"{result.wrong} differences" if result.wrong
             else "as recorded" + pools))
    return result.wrong


def main():
    memsim, folder = sys.argv[1:3]
    names = sys.argv[3:] or [
        name for name in CASES
        if os.path.exists(os.path.join(folder, "cases", f"{name}.json"))]
    exported, wrong = None, 0
    with tempfile.TemporaryDirectory() as scratch:
        graph = os.path.join(scratch, "step.graph.json")
        for name in sorted(names, key=lambda name: str(CASES[name][:3])):
            if CASES[name][:3] != exported:
                export(*CASES[name][:3], graph)
                exported = CASES[name][:3]
            wrong += compare(name, memsim, graph, folder)
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
