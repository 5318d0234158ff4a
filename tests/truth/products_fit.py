#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fits what products in fp8 and grouped products take beside those in 16 bits
(graphs/machines/times/producttime.c) on half of the shapes that NVIDIA's aiconfigurator
measured, and says how far off they are on the others:

    products_fit.py TRUTH DEVICES [--rows fp8|grouped]

TRUTH is truth/kernels, DEVICES graphs/devices, whose files have the rates in 16
bits.  In fp8 (TensorRT-LLM, a scale a tensor) what a tile takes to begin and to
end is so many elements of k, and its rate a share of the one in 16 bits; each row
contains the cast of what it reads, which has a start and a rate of its own, and is
in the cache where it fits.
Their runs go through several weights in turn (gemm_fit.py).  Experts are vLLM's
fused kernel, balanced, all on one device: two grouped products, the first of up
and gate, where there is one (GATELESS: Nemotron's, which square a ReLU), at one
share of the rates of products apart, a start, and what gates and sums move
at 0.6 of the memory's rate.  Beside that stands what training has not: Triton's
second product loads elements one by one where rows are no multiple of 16 (ODD), and
TensorRT-LLM's kernels (Blackwell), whose tiles have rows as columns, read the weight
of an expert anew for each of them where it does not fit half of the cache; CUTLASS's
do not.  --rows prints a sample of what is kept back, with
the time of what else a row holds ("beside").  Needs numpy and scipy."""
import csv
import gzip
import json
import sys
import zlib

import numpy as np
from scipy.optimize import minimize

import gemm_fit

DEVICES = {"H100 80GB HBM3": "h100-80gb-sxm", "H200": "h200-141gb-sxm",
           "B200": "b200-180gb-sxm", "GB200": "gb200-186gb", "L40S": "l40s-48gb"}
MOVED = 0.6
ODD = 16
TILE_ROWS = 128
LEAST_ROWS = 64
SAMPLE = 60
GATELESS = ((128, 2688, 1856), (512, 2048, 5120))  # experts, hidden, inner


def product_us(d, shape, peak, depth, share, width, weights=None):
    """batch, m, n, k; peak in FLOPs a us; width: bytes of an operand's element;
    weights: in turn, or all that is moved comes from memory"""
    batch, m, n, k = shape
    rate = d["hbm_gbps"] * 1e3 * d["product_memory_share"]
    processors, best = d["multiprocessors"], np.full(len(m), np.inf)
    cache = d["cache_mib"] * 2**20
    for tm, tn in gemm_fit.TILES:
        tile = d["product_%dx%d" % (tm, tn)] * share
        for s in gemm_fit.SPLITS if tile > 0 else ():
            tiles = np.ceil(m / tm) * np.ceil(n / tn) * batch * s
            c = np.ceil(tiles / processors) * tm * tn * (
                np.ceil(k / s / 64) * 64 + depth) * 2 * processors / (peak * tile)
            parts = 8 * s * batch * m * n
            if s > 1:
                c = c + 2 + gemm_fit.cached_us(parts, parts, cache, rate, processors)
            if s > 8:
                c = np.where(tiles > 8 * processors, np.inf, c)
            best = np.minimum(best, c)
    size = batch * (2 * m * n + width * (m * k + n * k))
    moved = size / rate
    if weights:
        again = size + width * (weights - 1) * n * k
        if d["compute_capability"] in (80, 90):  # both halves of the cache have it
            again = 2 * again
        moved = gemm_fit.cached_us(size, again, cache, rate, processors)
    low, high = np.minimum(best, moved), np.maximum(best, moved)
    sharp = d["product_sharpness"]
    return d["product_start_us"] + high * (1 + (low / high) ** sharp) ** (1 / sharp)


def read(path, keep, key):
    times = {}
    with gzip.open(path, "rt") as file:
        for row in csv.DictReader(file):
            if row["device"] in DEVICES and keep(row):
                times.setdefault((row["device"], *key(row)), []).append(
                    float(row["us"]))
    for name in DEVICES:
        shapes = sorted(k[1:] for k in times if k[0] == name)
        yield (DEVICES[name], np.array(shapes, float),
               np.array([np.median(times[(name, *s)]) for s in shapes]))


def fp8(truth):
    return read(truth + "/tables/aiconfigurator_gemm.csv.gz",
                lambda r: r["dtype"] == "fp8" and r["framework"] == "trtllm" and
                int(r["m"]) >= LEAST_ROWS, lambda r: [int(r[k]) for k in "mnk"])


def fp8_us(d, x, shapes):
    """product, beside; x: depth, share, start of the cast, and how much longer it
    takes than its bytes, which two kernels read (the largest, the cast)"""
    m, n, k = shapes.T
    rate = d["hbm_gbps"] * 1e3 * d["product_memory_share"]
    moved = gemm_fit.cached_us(5 * m * k, 3 * m * k, d["cache_mib"] * 2**20, rate,
                               d["multiprocessors"])
    return (product_us(d, (1, m, n, k), d["fp8_tflops"] * 1e6, x[0], x[1], 1,
                       gemm_fit.WEIGHTS), x[2] + x[3] * moved)


def grouped(truth):
    def key(r):
        e, t, h, i, k, tp = (int(r[c]) for c in ("experts", "tokens", "hidden",
                                                 "inter", "topk", "tp"))
        ups = 1 if (e, h, i) in GATELESS else 2
        return e, t * k // e, h, i // tp, t, ups, int("trtllm" in r["kernel"])
    return read(truth + "/tables/aiconfigurator_moe_bf16.csv.gz",
                lambda r: r["distribution"] == "balanced" and r["ep"] == "1" and
                int(r["tokens"]) * int(r["topk"]) >= LEAST_ROWS *
                int(r["experts"]), key)


def again_us(d, rows, experts, weight):
    """Weights (bytes) that are read once more for each tile but the first"""
    rate = d["hbm_gbps"] * 1e3 * d["product_memory_share"]
    cached = np.clip((1 - weight / (d["cache_mib"] * 2**19)) * 10, 0, 1)
    return experts * (rows / TILE_ROWS) * weight * (1 - cached) / rate


def grouped_us(d, x, shapes):
    """product, beside; x: share, start, and how much slower elements one by one or
    how much of weights that are read again"""
    e, m, h, i, t, ups, again = shapes.T
    peak, depth = d["half_tflops"] * 1e6, d["product_depth"]
    moved = 2 * e * m * ((ups + 1) * i + h) + 2 * t * h

    def of(n, k):
        return product_us(d, (e, np.where(again > 0, n, m), np.where(again > 0, m, n),
                              k), peak, depth, x[0], 2)
    up, down = of(ups * i, h), of(h, i)
    odd = (again == 0) & (i % ODD > 0) & (d["compute_capability"] < 100)
    return up + down, (
        x[1] + moved / (d["hbm_gbps"] * 1e3 * MOVED) + x[2] * (
            odd * down + again * (again_us(d, m, e, 2 * ups * i * h) +
                                  again_us(d, m, e, 2 * i * h))))


KINDS = {"fp8": (fp8, fp8_us, [300, 0.95, 9, 1.5], "m\tn\tk"),
         "grouped": (grouped, grouped_us, [0.7, 30, 1],
                     "experts\trows\thidden\tinner\ttokens\tups\tturned")}


def main(truth, devices, *options):
    for kind, (rows, us_of, first, columns) in KINDS.items():
        if options and kind != options[1]:
            continue
        if options:
            print("device\t%s\tmicroseconds\tbeside" % columns)
        for name, shapes, us in rows(truth):
            with open("%s/%s.json" % (devices, name)) as file:
                d = json.load(file)
            half = np.array([zlib.crc32(str(s[:5]).encode()) % 2
                             for s in shapes.tolist()]) == 1

            def loss(x):
                if min(x) <= 0:
                    return 9
                return np.mean(np.minimum(1, np.abs(np.log(
                    sum(us_of(d, x, shapes[~half])) / us[~half]))))
            x = minimize(loss, first, method="Nelder-Mead",
                         options={"maxiter": 600, "xatol": 1e-4}).x
            product, beside = us_of(d, x, shapes)
            if options:
                at = [i for i in np.flatnonzero(half)]
                at.sort(key=lambda i: zlib.crc32(repr(shapes[i].tolist()[:5]).encode()))
                for i in sorted(at[:SAMPLE], key=lambda i: shapes[i].tolist()):
                    print("%s\t%s\t%.1f\t%.1f" % (
                        name, "\t".join("%d" % v for v in shapes[i]), us[i],
                        beside[i]))
                continue
            error = np.abs((product + beside) / us - 1)[half]
            print("%-8s%-16s%s  %5d kept back: median %.1f %%, 95 of 100 %.1f %%"
                  % (kind, name, " ".join("%.3f" % v for v in x), half.sum(),
                     100 * np.median(error), 100 * np.quantile(error, 0.95)))


if __name__ == "__main__":
    main(*sys.argv[1:])
