#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of kernels that one H100 was measured with, on 2026-11-28:

    h100.py FOLDER      writes h100memory.tsv and h100kernels.tsv here

FOLDER has pointwise.jsonl, gemm.jsonl and attention.jsonl: medians by events of
PyTorch 2.11 (CUDA 13.0, cuDNN 9.19) on an H100 80GB SXM at 700 W, the host kept
ahead.  Nothing is fitted on them.  Left out: what takes more than one kernel,
and what is smaller than LEAST bytes, whose time is the start of a kernel."""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
DEVICE = "h100-80gb-sxm"
LEAST = 1 << 20
WIDTH = 2  # bf16
STREAMS = ("copy", "fill", "add_", "add", "scale", "multiply", "relu", "gelu",
           "dropout")
BACKWARD = ("scale", "relu", "gelu", "dropout")  # one kernel
ROWS = {"layer_norm": "norm", "rms_norm": "norm", "softmax": "softmax"}
HEADER = """# SPDX-License-Identifier: GPL-3.0-or-later
# Measured times of kernels on an H100, in microseconds (h100.py wrote it and
# says how they were measured).  %s
"""


def lines(folder, name):
    with open(os.path.join(folder, name + ".jsonl"), encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            if row["kind"] == "case" and "error" not in row:
                yield row


def memory(folder):
    for row in lines(folder, "pointwise"):
        op = row["op"]
        if row.get("bytes", 0) < LEAST:
            continue
        if op == "embedding":
            moved = 2 * row["bytes"] + 8 * row["tokens"]
            yield ("lookup", op, moved, row["width"], row["forward"]["us"])
        if op not in STREAMS and op not in ROWS:
            continue
        elements = row.get("width", 4096)
        for way in ("forward", "backward"):
            if way not in row or (way == "backward" and op in STREAMS and
                                  op not in BACKWARD):
                continue
            back = way == "backward"
            kernel = ROWS.get(op, "stream")
            if kernel == "norm" and back:
                kernel = "norm_backward"
            us = row[way]["us"]
            moved = round(row[way + "_gbps"] * us * 1e3)
            yield (kernel, op + ("_backward" if back else ""), moved,
                   elements, us)


def kernels(folder):
    formats = {"bf16": "half", "fp16": "half", "tf32": "tf32", "fp32": "fp32"}
    for row in lines(folder, "gemm"):
        if row["dtype"] in formats and row["role"] in (
                "forward", "dgrad", "wgrad"):
            yield ("gemm_" + row["role"], formats[row["dtype"]], 1, row["m"],
                   row["n"], row["k"], 1, row["us"])
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
                       row["h"] // row["kv"], row[way]["us"])


def main():
    folder = sys.argv[1]
    with open(os.path.join(HERE, "h100memory.tsv"), "w",
              encoding="utf-8") as out:
        out.write(HEADER % "Columns as of memory.tsv; op: PyTorch's.")
        out.write("device\tkernel\top\tbytes\trow\twidth\tbeside"
                  "\tmicroseconds\n")
        for kernel, op, moved, elements, us in memory(folder):
            out.write(f"{DEVICE}\t{kernel}\t{op}\t{moved}\t{elements}\t{WIDTH}"
                      f"\t0\t{us:g}\n")
    with open(os.path.join(HERE, "h100kernels.tsv"), "w",
              encoding="utf-8") as out:
        out.write(HEADER % "Columns as of kernels.tsv.")
        out.write("device\tkind\tformat\ta\tb\tc\td\tbeside\tgroup"
                  "\tmicroseconds\n")
        for kind, form, a, b, c, d, group, us in kernels(folder):
            out.write(f"{DEVICE}\t{kind}\t{form}\t{a}\t{b}\t{c:g}\t{d}\t0"
                      f"\t{group}\t{us:g}\n")


if __name__ == "__main__":
    main()
