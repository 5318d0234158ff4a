#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fits what a cast to fp8 takes (graphs/machines/times/memorytime.c) on half of the
shapes of aiconfigurator, and says how far off it is on the others:

    cast_fit.py TRUTH DEVICES [--fit]

TRUTH is truth/kernels, DEVICES graphs/devices.  Without --fit the numbers are those
of the C file.  The rows run again and again on the same tensors, the median of
TensorRT-LLM's and vLLM's kernels.  Needs numpy, and scipy to fit."""
import json
import statistics
import sys

import numpy as np

import kernels

# us to start; GB/s of a multiprocessor from L2; us and GB/s of a row's block.
NUMBERS = [0.23, 41, 0.38, 83]
THREADS = 256


def rows(truth):
    times = {}
    for device, _, _, (size, k), us, shape in kernels.casts(truth):
        half = kernels.hash_of(shape) % 2
        times.setdefault((device, half, size, k), []).append(us)
    return [(*key, statistics.median(us)) for key, us in sorted(times.items())]


def predict(x, d, size, k):
    start, l2, row, row_rate = x
    rate = d["hbm_gbps"] * 1e3 * d["product_memory_share"]
    cached = np.clip((1 - size / (d["cache_mib"] * 2**20)) * 10, 0, 1)
    moved = size * cached / max(l2 * 1e3 * d["multiprocessors"], rate) + (
        size * (1 - cached) / rate)
    waves = np.maximum(1, size / (3 * k) * THREADS / (
        d["multiprocessors"] * d["threads_per_multiprocessor"]))
    return d["kernel_us"] + start + np.hypot(
        moved, waves * (row + 3 * k / (row_rate * 1e3)))


def main(truth, devices, *options):
    table, x = rows(truth), NUMBERS
    names = sorted({r[0] for r in table})
    files = {}
    for name in names:
        with open("%s/%s.json" % (devices, name)) as file:
            files[name] = json.load(file)

    def errors(x, name, half):
        of = np.array([r[2:] for r in table if r[0] == name and r[1] == half])
        return np.log(predict(x, files[name], of[:, 0], of[:, 1]) / of[:, 2])
    if "--fit" in options:
        from scipy.optimize import minimize
        x = minimize(lambda x: 9 if min(x) <= 0 else np.mean(
            [np.mean(np.abs(errors(x, name, 0))) for name in names]), NUMBERS,
            method="Nelder-Mead").x
        print(" ".join("%.3g" % v for v in x))
    for name in names:
        off = np.abs(np.expm1(errors(x, name, 1)))
        print("%-16s%5d kept back: median %4.1f %%, 95 of 100 %4.1f %%" % (
            name, len(off), 100 * np.median(off), 100 * np.quantile(off, 0.95)))


if __name__ == "__main__":
    main(*sys.argv[1:])
