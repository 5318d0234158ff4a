#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of kernels that one H100 was measured with, on 2026-11-28:

    h100.py FOLDER      writes h100memory.tsv and h100kernels.tsv here

FOLDER has pointwise.jsonl, gemm.jsonl, attention.jsonl, launch.jsonl and
steps*.jsonl: medians by events of PyTorch 2.11 (CUDA 13.0, cuDNN 9.19) on an
H100 80GB SXM at 700 W, the host kept ahead.  Of each op (of products and
attention: kind and format) every other row, as they were measured, is the half
that is fitted on, the rest reports.  beside: what two events with nothing
between them take; of softmax's backward, whose first kernel multiplies gradient
and output, what a product of such tensors took as well.  The optimizer's rows
are phases of steps, and lists of equal tensors.  Left out: what takes more than
one kernel, and what is smaller than LEAST bytes, whose time is the start of a
kernel."""
import itertools
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
DEVICE = "h100-80gb-sxm"
LEAST = 1 << 20
WIDTH = 2  # bf16
FORWARD = ("copy", "fill", "add_", "add", "scale", "multiply", "relu", "gelu",
           "dropout", "cat", "to_fp32", "add_bias", "contiguous", "layer_norm",
           "rms_norm", "softmax")
BACKWARD = ("scale", "relu", "gelu", "dropout", "to_fp32", "add_bias",
            "layer_norm", "rms_norm", "softmax")
# Kernels (test_memories.c) of ops; of others streams that find nothing in the
# cache.
ROWS = {"layer_norm": "centred", "rms_norm": "rms", "softmax": "registers"}
KERNELS = {"dropout": "random", "to_fp32": "single", "add_bias": "single",
           "contiguous": "scattered", **ROWS}
MOVED = {"fused": 7, "foreach": 20}  # by AdamW of an element, in its width
EVENTS_US = 1.28  # "nothing between two events"
# The loss behind log_softmax: 19.2 us in the profile of a step, and its start.
NLL_TOKENS, NLL_US = 8192, 21.5
HEADER = """# SPDX-License-Identifier: GPL-3.0-or-later
# Measured times of kernels on an H100, in microseconds (h100.py wrote it and
# says how they were measured).  %s
"""


def lines(folder, name, kind="case"):
    with open(os.path.join(folder, name + ".jsonl"), encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            if row["kind"] == kind and "error" not in row:
                yield row


def losses(row):
    if row["dtype"] == "fp32" and row["tokens"] == NLL_TOKENS:
        yield ("log", "log_softmax", 2 * row["bytes"], row["vocab"], 4,
               EVENTS_US + NLL_US, row["forward"]["us"])


def pointwise(folder):
    """kernel, op, bytes moved, elements of a row (of "single",
    "scattered" and "random": all; of "columns": rows), bytes of
    one, us beside, us"""
    multiply = {}
    for row in lines(folder, "pointwise"):
        op = row["op"]
        if op == "multiply":
            multiply[row["bytes"]] = row["forward"]["us"]
        if row.get("bytes", 0) < LEAST:
            continue
        if op == "embedding":
            moved = 2 * row["bytes"] + 8 * row["tokens"]
            yield ("cold", op, moved, row["width"], WIDTH, EVENTS_US,
                   row["forward"]["us"])
            continue
        if op == "cross_entropy":
            yield from losses(row)
            continue
        for way in ("forward", "backward"):
            back = way == "backward"
            if way not in row or op not in (BACKWARD if back else FORWARD):
                continue
            us = row[way]["us"]
            moved = round(row[way + "_gbps"] * us * 1e3)
            beside = EVENTS_US
            if op == "softmax" and back:
                beside = multiply[row["bytes"]]
            kernel = KERNELS.get(op, "cold")
            if back:
                kernel = ROWS[op] + "_backward" if op in ROWS else "cold"
            elements = row.get("width", 4096)
            if kernel in ("single", "scattered", "random"):
                elements = row["bytes"] // WIDTH
            if op == "add_bias" and back:
                kernel, elements = "columns", row["rows"]
            name = op + ("_backward" if back else "")
            yield kernel, name, moved, elements, WIDTH, beside, us


def optimizers(folder):
    """The same, of lists of tensors: AdamW fused and op by op (foreach).  What
    the host's clock says is of the largest alone."""
    seen = set()
    for row in lines(folder, "launch"):
        if row["name"] in ("adamw fused 32 of 8388608",
                           "adamw foreach 32 of 8388608"):
            moved = MOVED[row["impl"]] * 4 * row["tensors"] * row["size"]
            yield ("lists", "adamw_" + row["impl"], moved, 0, 4, 0,
                   row["wall"]["us"])
    for name in ("steps", "steps2"):
        for row in lines(folder, name, "train"):
            case = row["case"]
            width = 2 if case.get("prec") == "bf16" else 4
            impl = case.get("impl", "foreach")
            key = (impl, width, row["parameters"])
            if (case.get("opt", "adamw") != "adamw" or impl not in MOVED or
                    key in seen):
                continue
            seen.add(key)
            yield ("lists", "adamw_" + impl,
                   MOVED[impl] * width * row["parameters"], 0, width, 0,
                   1e3 * row["phases_ms"]["optimizer"])


def memory(folder):
    return itertools.chain(pointwise(folder), optimizers(folder))


def kernels(folder):
    formats = {"bf16": "half", "fp16": "half", "tf32": "tf32", "fp32": "fp32"}
    for row in lines(folder, "gemm"):
        if row["dtype"] in formats and row["role"] in (
                "forward", "dgrad", "wgrad"):
            yield ("gemm_" + row["role"], formats[row["dtype"]], 1, row["m"],
                   row["n"], row["k"], EVENTS_US, 1, row["us"])
    for row in lines(folder, "attention"):
        if row["backend"] not in ("flash", "cudnn") or row["dtype"] not in (
                "bf16", "fp16"):
            continue
        kernel = "flash2" if row["backend"] == "flash" else "flash3"
        keys = row["s"] / 2 if row["causal"] else row["s"]
        kind = row["backend"] + ("_causal" if row["causal"] else "_full")
        for way in ("forward", "backward"):
            if way in row:
                yield (kind, kernel + ("_backward" if way == "backward" else ""),
                       row["b"] * row["h"], row["s"], keys, row["d"],
                       EVENTS_US, row["h"] // row["kv"], row[way]["us"])


def halves(rows, n_keys):
    """Each row after its half."""
    seen = {}
    for row in rows:
        key = row[:n_keys]
        seen[key] = seen.get(key, 0) + 1
        yield ("fit" if seen[key] % 2 else "report",) + row


def write(name, says, columns, rows):
    with open(os.path.join(HERE, name), "w", encoding="utf-8") as out:
        out.write(HEADER % says)
        out.write("device\t" + "\t".join(columns) + "\n")
        for row in rows:
            out.write("\t".join([DEVICE] + [
                "%.10g" % c if isinstance(c, float) else str(c)
                for c in row]) + "\n")


def main():
    folder = sys.argv[1]
    write("h100memory.tsv", "Columns as of memory.tsv; op: PyTorch's.",
          ["half", "kernel", "op", "bytes", "row", "width", "beside",
           "microseconds"], halves(memory(folder), 2))
    write("h100kernels.tsv", "Columns as of kernels.tsv.",
          ["half", "kind", "format", "a", "b", "c", "d", "beside", "group",
           "microseconds"], halves(kernels(folder), 2))


if __name__ == "__main__":
    main()
