#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fits the model of a matrix product (graphs/machines/times/producttime.c) to measured
ones, and says how far off it is on shapes that it was not fitted on:

    gemm_fit.py aiconfigurator_gemm.csv.gz "H100 80GB HBM3" 989 3350 132 50

The table is that of truth/kernels (NVIDIA's aiconfigurator, bf16), then the
device as it stands there, its dense peak in TFLOP/s, GB/s, multiprocessors and
MiB of cache, of an A100 or H100 one of its two halves (products alone).  The runs go through several weights in turn (WEIGHTS, taken between
5 and 6 on an L40S), so that operands of small products come from the cache, at 41
GB/s a multiprocessor, as parts of a k that is split do.  Needs numpy and scipy."""
import csv
import gzip
import sys
import zlib

import numpy as np
from scipy.optimize import minimize

TILES = [(256, 128), (128, 128), (128, 64), (64, 64)]
SPLITS = [1, 2, 4, 8, 16, 32]
WEIGHTS = 5
CACHE_RATE = 41e3  # bytes a us and multiprocessor


def rows_of(path, device):
    """The median over frameworks of each shape."""
    times = {}
    with gzip.open(path, "rt") as file:
        for row in csv.DictReader(file):
            if row["device"] == device and row["dtype"] in ("bfloat16", "float16"):
                shape = tuple(int(row[k]) for k in "mnk")
                times.setdefault(shape, []).append(float(row["us"]))
    shapes = sorted(times)
    return np.array(shapes, float), np.array([np.median(times[s]) for s in shapes])


def cached_us(size, all_of_it, cache, rate, processors):
    """Bytes that are in the cache as far as all_of_it fits; rate: the memory's"""
    share = np.clip((1 - all_of_it / cache) * 10, 0, 1)
    return size * share / max(CACHE_RATE * processors, rate) + size * (1 - share) / rate


def predict(p, shape, peak, rate, processors, cache):
    """us; p: start, depth, memory share, sharpness, share of the peak by tile"""
    start, depth, memory, sharp = p[:4]
    m, n, k = shape.T
    best = np.full(len(m), np.inf)
    rate = rate * memory
    moved = cached_us(2 * (m * n + m * k + n * k),
                      2 * (m * n + m * k + WEIGHTS * n * k), cache, rate, processors)
    for (tm, tn), share in zip(TILES, p[4:]):
        if share <= 0:
            continue
        tiles = np.ceil(m / tm) * np.ceil(n / tn)
        for s in SPLITS:
            waves = np.ceil(tiles * s / processors)
            steps = np.ceil(k / s / 64) * 64 + depth
            c = waves * tm * tn * steps * 2 * processors / (peak * share)
            if s > 1:
                parts = 8 * m * n * s
                c = c + cached_us(parts, parts, cache, rate, processors) + 2
            if s > 8:
                c = np.where(tiles * s > 8 * processors, np.inf, c)
            best = np.minimum(best, c)
    return start + (best**sharp + moved**sharp) ** (1 / sharp)


def main(path, device, peak, rate, processors, cache):
    shape, us = rows_of(path, device)
    peak, rate = float(peak) * 1e6, float(rate) * 1e3  # per us
    processors, cache = int(processors), float(cache) * 2**20
    half = np.array([zlib.crc32(str(s).encode()) % 2 for s in shape.tolist()])
    use = shape[:, 0] >= 64
    fit, report = use & (half == 0), use & (half == 1)

    def loss(x):
        if min(x) <= 0 or max(x[4:]) > 1.1 or x[2] > 1:
            return 1e9
        p = predict(x, shape[fit], peak, rate, processors, cache)
        return np.mean(np.abs(np.log(p / us[fit])))

    best = None
    for first in ([2.5, 150, 0.8, 3, 0.8, 0.85, 0.8, 0.75],
                  [3.5, 200, 0.85, 4, 0.6, 0.7, 0.7, 0.65]):
        got = minimize(loss, first, method="Nelder-Mead",
                       options={"maxiter": 2500, "xatol": 1e-4, "fatol": 1e-5})
        if best is None or got.fun < best.fun:
            best = got
    print(device, "start %.2f us, depth %.0f, memory %.3f, sharpness %.2f, tiles"
          % tuple(best.x[:4]), " ".join("%dx%d %.3f" % (*t, e) for t, e in
                                        zip(TILES, best.x[4:])))
    error = np.abs(predict(best.x, shape[report], peak, rate, processors,
                          cache)
                   / us[report] - 1)
    print("  %d shapes kept back: median %.1f %%, 95 of 100 %.1f %%" % (
        report.sum(), 100 * np.median(error), 100 * np.quantile(error, 0.95)))


if __name__ == "__main__":
    main(*sys.argv[1:])
