#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fits what bounds kernels by memory (graphs/machines/times/memorytime.c) on half of
the shapes that were measured, and says how far off it is on the others:

    memory_fit.py TRUTH [--rows] [--leave-out]

TRUTH is truth/kernels: tables of NeuSight (PyTorch 2.1, fp32) and vidur (fp16),
kernels.json for cudnn-frontend's runs of PyTorch (bf16) and gpu-benches.  A
shape is in one half on all devices.  --rows prints a sample of the half kept
back, as memory.tsv has it; --leave-out fits the constants that all devices
share without each device and each source in turn.  Needs numpy.

NeuSight's times hold what its host takes between two events (HOST_US), as its
smallest shapes, of 37 elements, show; --rows says so ("beside").  Left out: what it
timed at less than 400 us; pow, which no memory bounds; vLLM's own kernels in vidur (norms, gates)
and phi-2 there, whose add is two; MI100 and MI210, which have no device file.
GB300 counts as GB200, whose memory it has."""
import csv
import gzip
import json
import sys
import zlib

import numpy as np

# GB/s, multiprocessors, threads of one, cache in MiB; file in graphs/devices.
DEVICES = {
    "A100-PCIE-40GB": (1555, 108, 2048, 40, "a100-40gb-pcie"),
    "A100 80GB PCIe": (1935, 108, 2048, 40, "a100-80gb-pcie"),
    "a100": (2039, 108, 2048, 40, "a100-80gb-sxm"),
    "h100": (3350, 132, 2048, 50, "h100-80gb-sxm"),
    "H200": (4800, 132, 2048, 50, "h200-141gb-sxm"),
    "GB200": (8000, 152, 2048, 126, "gb200-186gb"),
    "Tesla V100-PCIE-32GB": (900, 80, 2048, 6, "v100-32gb-pcie"),
    "Tesla T4": (320, 40, 1024, 4, "t4-16gb"),
    "L4": (300, 58, 1536, 48, "l4-24gb"),
}
SAME = {"A100-80GB": "a100", "GB300": "GB200"}
STREAMS = {"add": 3, "mul": 3, "div": 3, "addu": 2, "mulu": 2, "divu": 2,
           "relu": 2, "gelu": 2, "tanh": 2}
# us of a kernel's smallest shapes less 2.5 of the kernel; A100-80GB's and L4's were
# not timed and are taken from an A100-40GB's.
HOST_US = {
    "A100-PCIE-40GB": {"stream": 23.5, "norm": 43, "softmax": 29.5},
    "Tesla T4": {"stream": 23, "norm": 44, "softmax": 30},
    "Tesla V100-PCIE-32GB": {"stream": 29.5, "norm": 55, "softmax": 37.5},
}
HALVES = ("A100-PCIE-40GB", "A100 80GB PCIe", "a100", "h100", "H200")
KERNELS = ["stream", "norm", "norm_backward", "softmax", "lookup"]
START_US = 1.3
LEAST_US = 400
LEAST_ELEMENTS = 3 << 20
SAMPLE = 40  # rows of a kernel and device in memory.tsv


def neusight(truth):
    with gzip.open(truth + "/tables/neusight_fp32.csv.gz", "rt") as file:
        for r in csv.DictReader(file):
            if r["device"] not in DEVICES or float(r["us"]) < LEAST_US:
                continue
            op = r["op"]
            kernel = {"ln": "norm", "softmax": "softmax"}.get(op)
            if op in STREAMS:
                kernel = "stream"
            if kernel:
                n, row = map(int, r["shape (BxMxNxK or BxH)"].split("x"))
                yield (r["device"], kernel, 4 * n * row * STREAMS.get(op, 2),
                       row, 4, float(r["us"]), "neusight", (n, row))


def vidur(truth):
    with gzip.open(truth + "/tables/vidur_layer_ops_fp16.csv.gz", "rt") as file:
        for r in csv.DictReader(file):
            n, row = int(r["tokens"]), int(r["hidden"])
            kernel = {"add": "stream", "emb": "lookup"}.get(r["op"])
            us = float(r["us_median"])
            # The times are whole microseconds.
            if (kernel and r["device"] in DEVICES and r["tp"] == "1" and
                    n * row >= LEAST_ELEMENTS and "phi" not in r["model"]):
                yield (r["device"], kernel, 2 * n * row * (3 if kernel == "stream" else 2),
                       row, 2, us, "vidur", (n, row))


def others(truth):
    with open(truth + "/kernels.json") as file:
        for r in json.load(file):
            device = SAME.get(r.get("device"), r.get("device"))
            if r["kind"] != "memory" or device not in DEVICES:
                continue
            if r["op"] in ("rms_norm pytorch", "layer_norm pytorch"):
                back = r["pass"] == "bwd"
                size = 2 * r["rows"] * r["cols"] * (3 if back else 2)
                # The time is rounded to 1 us, the rate is not.
                yield (device, "norm_backward" if back else "norm", size,
                       r["cols"], 2, size / r["gbps_stated"] / 1e3,
                       "cudnn-frontend", (r["rows"], r["cols"]))
            elif r["op"].startswith("scale") and r["op"].endswith("graph"):
                yield (device, "stream", r["bytes"], 0, 8, r["value"],
                       "gpu-benches", (r["bytes"],))


def read(truth):
    rows = {}
    for source in (neusight, vidur, others):
        for r in source(truth):
            rows.setdefault(r[:5] + r[6:], []).append(r[5])
    return [k[:5] + (float(np.median(us)),) + k[5:] for k, us in
            sorted(rows.items(), key=str)]


def host_of(device, kernel):
    return HOST_US.get(device, HOST_US["A100-PCIE-40GB"])[kernel]


def table_of(rows):
    return {"device": np.array([r[0] for r in rows]),
            "kernel": np.array([r[1] for r in rows]),
            "bytes": np.array([r[2] for r in rows], float),
            "row": np.array([r[3] for r in rows], float),
            "width": np.array([r[4] for r in rows], float),
            "us": np.array([r[5] for r in rows]),
            "source": np.array([r[6] for r in rows]),
            "host": np.array([host_of(*r[:2]) if r[6] == "neusight" else 0
                              for r in rows]),
            "half": np.array([zlib.crc32(str(r[7]).encode()) % 2 for r in rows]),
            "machine": np.array([DEVICES[r[0]][:4] for r in rows], float)}


# What all devices share: the share of the time that the cache saves, the ends
# of the spill of norms and of softmax; of norms, us of a row's block and ns of an
# element of it; of their backward, how much longer it takes, its blocks, and what
# the weight's gradient takes; of softmax, what comes from the cache again of rows
# that begin at no multiple of 16 bytes (HALVES: devices each half of whose cache
# has what all multiprocessors read).
FIRST = [0.3, 0.3, 0.8, 0.07, 0.97, 1.45, 1.9, 1.9, 1.3, 0.3, 0.74]
GAIN = 0.001  # of the mean error: less is no reason to change every norm's time
STEPS = [np.arange(0, 0.65, 0.05), np.arange(0, 0.8, 0.05),
         np.arange(0.1, 1.6, 0.05), np.arange(0, 0.8, 0.05),
         np.arange(0.1, 1.6, 0.05), np.arange(0.5, 3, 0.05),
         np.arange(0.2, 3, 0.05), np.arange(1, 3, 0.05),
         np.arange(1, 3, 0.05), np.arange(0, 1.5, 0.05), np.arange(0, 1.5, 0.05)]
# gpu-benches goes over the same buffers of doubles again and again.
HOT_WIDTH = 8
CACHE_RATE = 41e3  # bytes a us and multiprocessor (gemm_fit.py)
HOPPER_CACHED = 0.4
THREADS = 128  # of a norm's block, which has a row
COLUMNS = 32   # of a block of the weight's gradient, and its bytes a us
BLOCK_RATE = 60e3


def rows_us(p, t):
    """Of the blocks of norms, a wave after another"""
    _, processors, threads, _ = t["machine"].T
    back = t["kernel"] == "norm_backward"
    row = np.maximum(t["row"], 1)
    n = t["bytes"] / np.where(back, 3, 2) / t["width"] / row
    waves = np.maximum(1, n * THREADS / processors / threads)
    return np.where(back, p[8], t["kernel"] == "norm") * waves * (
        p[5] + p[6] * row / 1e3)


def streamed_us(p, t, share):
    """What is moved"""
    gbps, processors, threads, cache = t["machine"].T
    cache = cache * 2.0**20
    kernel = t["kernel"]
    norm, softmax = kernel == "norm", kernel == "softmax"
    of_row = np.where(norm, THREADS, np.clip(t["row"] * t["width"] / 16, 32, 1024))
    under_way = np.minimum(processors * threads / of_row * t["row"] * t["width"],
                           t["bytes"]) / np.where(
                               softmax & np.isin(t["device"], HALVES), cache / 2, cache)
    low, high = np.where(norm, p[1], p[3]), np.where(norm, p[2], p[4])
    again = np.where(norm, 0.5, np.where(softmax & (t["row"] > 1024), 1, 0))
    gone = np.clip((under_way - low) / (high - low), 0, 1)
    odd = softmax & (t["row"] * t["width"] % 16 > 0)
    odd_us = odd * p[10] * again * (1 - gone) * t["bytes"] / np.maximum(
        CACHE_RATE * processors, gbps * 1e3 * share)
    again = again * gone
    part = t["bytes"] / cache
    saved = np.where((kernel == "stream") & (t["device"] == "h100"),
                     HOPPER_CACHED / (1 + part), p[0] / (1 + part ** 2))
    saved = np.where(kernel == "lookup", 0, saved)
    rate = gbps * 1e3 * share
    hot = np.clip((1 - t["bytes"] / cache) * 10, 0, 1)
    return odd_us + t["bytes"] * np.where(
        t["width"] == HOT_WIDTH,
        hot / np.maximum(CACHE_RATE * processors, rate) + (1 - hot) / rate,
        (1 + again) * (1 - saved) / rate)


def predict(p, t, share):
    """us at these shares of the memory's rate"""
    moved = streamed_us(p, t, share)
    back = t["kernel"] == "norm_backward"
    row = np.maximum(t["row"], COLUMNS)
    weight = np.maximum(p[9] * moved, np.ceil(
        np.ceil(row / COLUMNS) / t["machine"][:, 1]) * t["bytes"] * 2 / 3 *
        COLUMNS / row / BLOCK_RATE)
    return (START_US + np.maximum(np.where(back, p[7], 1) * moved, rows_us(p, t)) +
            np.where(back, weight, 0) + t["host"])


def shares_of(p, t, use):
    """By device, of streams (of norms, where no stream was timed), of lookups:
    the weighted medians, which have the least absolute error."""
    share = np.full(len(t["us"]), np.nan)
    found = {}
    net = streamed_us(p, t, 1.0)
    rows, big = rows_us(p, t), t["machine"][:, 3] * 2.0**20
    for device in DEVICES:
        at = t["device"] == device
        for lookup in (False, True):
            fit = at & use & ((t["kernel"] == "lookup") == lookup)
            kinds = ("lookup",) if lookup else ("stream", "norm")
            for kind in kinds:
                # Some us of cudnn-frontend's small rows are its host's.
                of = fit & (t["kernel"] == kind) & (
                    (t["bytes"] >= 1e8) | (kind != "norm"))
                of = of & (rows < 0.9 * t["us"]) & (
                    (t["width"] != HOT_WIDTH) | (t["bytes"] > big))
                if of.any():
                    got = net[of] / np.maximum(
                        t["us"][of] - t["host"][of] - START_US, 0.1)
                    order = np.argsort(got)
                    # |a / share / us - 1| weighs by a / us
                    weight = np.cumsum((net[of] / t["us"][of])[order])
                    found[device, lookup] = got[order][
                        np.searchsorted(weight, weight[-1] / 2)]
                    break
            share[at & ((t["kernel"] == "lookup") == lookup)] = found.get(
                (device, lookup), 0.2 if lookup else 0.85)
    return share, found


def loss(p, t, use):
    if p[2] <= p[1] or p[4] <= p[3]:
        return 9
    share, _ = shares_of(p, t, use)
    error = np.abs(predict(p, t, share) / t["us"] - 1)
    return np.mean([np.mean(error[use & (t["device"] == d) & (t["kernel"] == k)])
                    for d in DEVICES for k in KERNELS
                    if (use & (t["device"] == d) & (t["kernel"] == k)).any()])


def fit(t, use):
    p, least = list(FIRST), loss(FIRST, t, use)
    for _ in range(3):
        before = least
        for i, steps in enumerate(STEPS):
            for value in steps:
                tried = p[:i] + [float(value)] + p[i + 1:]
                got = loss(tried, t, use)
                if got < least - GAIN:
                    p, least = tried, got
        if least == before:
            break
    return p


def tell(p, t, share, which, title):
    error = np.abs(predict(p, t, share) / t["us"] - 1)
    for d in DEVICES:
        for k in KERNELS:
            of = which & (t["device"] == d) & (t["kernel"] == k)
            if of.any():
                print("%s %-16s %-14s %5d rows: median %4.1f %%, 95 of 100 %4.1f %%"
                      % (title, DEVICES[d][4], k, of.sum(),
                         100 * np.median(error[of]),
                         100 * np.quantile(error[of], 0.95)))


def sample(t):
    print("device\tkernel\tbytes\trow\twidth\tbeside\tmicroseconds")
    for d in DEVICES:
        for k in KERNELS:
            of = np.flatnonzero((t["half"] == 1) & (t["device"] == d) &
                                (t["kernel"] == k))
            of = of[np.argsort([zlib.crc32(str((t["bytes"][i], t["row"][i]))
                                           .encode()) for i in of])][:SAMPLE]
            for i in sorted(of, key=lambda i: (t["bytes"][i], t["row"][i])):
                print("%s\t%s\t%d\t%d\t%d\t%g\t%.1f" % (
                    DEVICES[d][4], k, t["bytes"][i], t["row"][i],
                    t["width"][i], t["host"][i], t["us"][i]))


def main(truth, *options):
    t = table_of(read(truth))
    if "--rows" in options:
        return sample(t)
    use = t["half"] == 0
    p = fit(t, use)
    share, found = shares_of(p, t, use)
    print("cached %.2f, norm %.2f to %.2f, softmax %.2f to %.2f; rows of norms "
          "%.2f us, %.2f ns an element; backward %.2f, rows %.2f, weight %.2f; "
          "odd rows of softmax %.2f" % tuple(p))
    for (device, lookup), value in found.items():
        print("%-16s %s_share %.3f" % (DEVICES[device][4],
                                       "lookup" if lookup else "stream", value))
    tell(p, t, share, ~use, "kept back:")
    for column in ("device", "source") if "--leave-out" in options else ():
        for left in sorted(set(t[column])):
            out = t[column] == left
            if (use & ~out).any():
                q = fit(t, use & ~out)
                tell(q, t, shares_of(q, t, use)[0], ~use & out,
                     "without %s:" % left)


if __name__ == "__main__":
    main(*sys.argv[1:])
