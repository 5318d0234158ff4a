#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fits the families of convolutions in fp32 (graphs/machines/times/producttime.c) on half
of the shapes that DeepBench measured on V100 and T4 (channels outside, cuDNN 7.6),
and says how far off they are on the others:

    convolution_fit.py TRUTH DEVICES [--rows]

TRUTH is truth/kernels, DEVICES graphs/devices, whose files have the rates of
products.  An implicit product goes at a share of those by pass, and 3 x 3 of
stride 1 are Winograd's F(2 x 2, 3 x 3) at another, if that is faster.  In 16 bits
nothing is fitted: convolutions are products there, and a pass over what is laid
out anew.  --rows prints what is kept back, as convolutions.tsv has it.  Needs
numpy and scipy."""
import json
import math
import sys
import zlib

import numpy as np
from scipy.optimize import minimize

DEVICES = {"V100 (DGX-1)": "v100-16gb-sxm2", "T4": "t4-16gb"}
PASSES = {"fwd": "forward", "bwd data": "input", "bwd weights": "weight"}
TILES = [(128, 128), (128, 64), (64, 64)]
SPLITS = [1, 2, 4, 8, 16, 32, 64]


def read(truth, devices):
    with open(truth + "/kernels.json") as file:
        for r in json.load(file):
            if r["kind"] != "conv" or r["device"] not in DEVICES:
                continue
            name = DEVICES[r["device"]]
            with open("%s/%s.json" % (devices, name)) as device:
                d = json.load(device)
            n, c, h, w, k = (r[x] for x in "nchwk")
            rows, columns, stride = r["r_height"], r["s_width"], r["stride_h"]
            p = (h + 2 * r["pad_h"] - rows) // stride + 1
            q = (w + 2 * r["pad_w"] - columns) // r["stride_w"] + 1
            flops = 2 * n * p * q * k * c * rows * columns
            shape = {"fwd": (n * p * q, k), "bwd data": (n * h * w, c),
                     "bwd weights": (k, c * rows * columns)}[r["pass"]]
            half = r["dtype"].startswith("fp16")
            yield {"device": name, "d": d, "pass": PASSES[r["pass"]],
                   "half": half, "m": shape[0], "n": shape[1],
                   "k": max(1, round(flops / 2 / shape[0] / shape[1])),
                   "three": rows == columns == 3 and h == p,
                   "bytes": (2 if half else 4) * (
                       n * c * h * w + n * k * p * q + k * c * rows * columns),
                   "us": r["value"], "kept": zlib.crc32(str(
                       (n, c, h, w, k, rows, columns, stride)).encode()) % 2}


def product_us(d, batch, m, n, k, moved, share):
    """In fp32, as producttime.c has it; the depth as devicefile.c derives it."""
    processors = d["multiprocessors"]
    rate = d["fp32_tflops"] * 1e6 * d["fp32_share"] * share
    reached = d["half_matmul_tflops"] / d["half_tflops"]
    depth = min(150, 2.5 * reached * d["half_tflops"] * 1e6 / processors / 32768)
    depth *= rate / (d["half_tflops"] * 1e6)
    memory, best = d["hbm_gbps"] * 1e3 * 0.8, math.inf
    for tm, tn in TILES:
        for s in SPLITS:
            waves = math.ceil(math.ceil(m / tm) * math.ceil(n / tn) * batch * s /
                              processors)
            us = waves * tm * tn * (math.ceil(k / s / 16) * 16 + depth) * 2 * (
                processors / rate)
            best = min(best, us + (0 if s == 1 else
                                   2 + 8 * s * batch * m * n / memory))
    moved /= memory
    low, high = min(best, moved), max(best, moved)
    return 2.5 + high * (1 + (low / high) ** 3.5) ** (1 / 3.5)


def us_of(r, implicit, winograd):
    m, n, k = r["m"], r["n"], r["k"]
    us = product_us(r["d"], 1, m, n, k, r["bytes"], implicit)
    if not r["three"]:
        return us
    if r["pass"] == "weight":
        n, k = n / 9, k / 4
    else:
        m, k = m / 4, k / 9
    moved = 64 * (m * n + m * k + n * k)
    return min(us, product_us(r["d"], 16, m, n, k, moved, winograd))


def main(truth, devices, *options):
    rows = list(read(truth, devices))
    if options:
        print("device\tformat\tpass\tm\tn\tk\tbytes\tthree\tmicroseconds")
        for r in rows:
            if r["kept"]:
                print("%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%g" % (
                    r["device"], "half" if r["half"] else "fp32", r["pass"],
                    r["m"], r["n"], r["k"], r["bytes"], r["three"], r["us"]))
        return
    for name in PASSES.values():
        of = [r for r in rows if r["pass"] == name and not r["half"]]
        fit = [r for r in of if not r["kept"]]

        def loss(x):
            if min(x) <= 0.05:
                return 9
            return np.mean([abs(math.log(us_of(r, *x) / r["us"])) for r in fit])
        x = minimize(loss, [0.75, 0.7], method="Nelder-Mead",
                     options={"maxiter": 100}).x
        for device in DEVICES.values():
            error = [abs(us_of(r, *x) / r["us"] - 1) for r in of
                     if r["kept"] and r["device"] == device]
            print("%-8s implicit %.2f, Winograd %.2f; %-15s %3d kept back: median "
                  "%.1f %%, 95 of 100 %.1f %%" % (
                      name, *x, device, len(error), 100 * np.median(error),
                      100 * np.quantile(error, 0.95)))


if __name__ == "__main__":
    main(*sys.argv[1:])
