#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fits the ways of a convolution (graphs/machines/times/convolutiontime.c) on half
of the shapes that DeepBench measured on V100 and T4 (channels outside, cuDNN 7.6),
and says how far off they are on the others:

    convolution_fit.py TRUTH DEVICES [--rows | --fit]

TRUTH is truth/kernels, DEVICES graphs/devices, whose files have the rates of
products.  The numbers are the same for both devices but for what Turing's
gradients in 16 bits take (turing_).  A shape is kept back by its hash, on both
devices, in all passes and formats at once.  --fit moves the numbers from where
they are; --rows prints what is kept back, as convolutions.tsv has it.  Needs
numpy, and scipy to fit."""
import json
import math
import sys
import zlib

import numpy as np

DEVICES = {"V100 (DGX-1)": "v100-16gb-sxm2", "T4": "t4-16gb"}
PASSES = {"fwd": "forward", "bwd data": "input", "bwd weights": "weight"}
# As in convolutiontime.c.
NUMBERS = {
    "volta": 0.92, "laid": 2.7,
    "half_forward": 1.7, "half_input": 2.2, "half_weight": 5.2,
    "half_strided": 1, "half_slower": 0.95, "half_moved": 1,
    "half_64": 0.89, "half_32": 0.51,
    "turing_slower": 1.5, "turing_summed": 7.7,
    "fp32_forward": 6.5, "fp32_input": 5, "fp32_weight": 8.9,
    "fp32_summed": 17, "fp32_strided": 2.2, "fp32_slower": 1.36,
    "fp32_moved": 1.7, "fp32_64": 0.97, "fp32_32": 0.86,
    "weight": 0.7, "weight_m": 0.99, "weight_n": 0.75,
    "winograd": 1.17, "winograd_kernels": 4, "fused": 0.58,
}


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
            shape = {"fwd": (n * p * q, k), "bwd data": (n * h * w, c),
                     "bwd weights": (k, c * rows * columns)}[r["pass"]]
            flops = 2 * n * p * q * k * c * rows * columns
            half = r["dtype"].startswith("fp16")
            yield {"device": name, "d": d, "pass": PASSES[r["pass"]],
                   "half": half, "m": shape[0], "n": shape[1],
                   "k": max(1, round(flops / 2 / shape[0] / shape[1])),
                   "taps": min(255, rows * columns), "stride": stride,
                   "side": min(255, round(math.sqrt(p * q))),
                   "three": rows == columns == 3 and stride == 1,
                   "us": r["value"], "kept": zlib.crc32(str(
                       (n, c, h, w, k, rows, columns, stride)).encode()) % 2}


def whole(x, step):
    return math.ceil(x / step) * step


class Clock:
    """Of one device and format, as convolutiontime.c has it."""

    def __init__(self, row, x):
        d, self.r, self.x = row["d"], row, x
        self.processors, peak = d["multiprocessors"], d["half_tflops"] * 1e6
        reached = d["half_matmul_tflops"] / d["half_tflops"]
        depth = min(150, 2.5 * reached * peak / self.processors / 32768)
        self.memory = d["hbm_gbps"] * 1e3 * 0.8
        self.half, self.turing = row["half"], d["compute_capability"] >= 75
        if self.half:
            self.rate, self.depth = peak * reached * (1 + depth / 8192), depth
            if not self.turing:
                self.rate *= x["volta"]
        else:
            self.rate = (d["fp32_tflops"] * 1e6 * d["fp32_share"] *
                         d["convolution_share"])
            self.depth = depth * self.rate / peak
        self.bytes, self.step = (2, 32) if self.half else (4, 8)
        turing = self.half and self.turing
        self.slower = x["turing_slower"] if turing else self.of("slower")
        self.summed = (x["turing_summed"] if turing else
                       0 if self.half else x["fp32_summed"])

    def of(self, name):
        return self.x[("half_" if self.half else "fp32_") + name]

    def tiles(self, shape, tiles, parts, share=1):
        batch, m, n, k = shape
        least = math.inf
        for tm, tn, tile in tiles:
            count = math.ceil(m / tm) * math.ceil(n / tn) * batch
            s = parts
            while s > 8 and count * s > 8 * self.processors:
                s //= 2
            while s >= 1:
                us = math.ceil(count * s / self.processors) * tm * tn * 2 * (
                    whole(k / s, self.step) + self.depth * share) / (
                        self.rate * share / self.processors * tile)
                if s > 1:
                    us += 2 + 8 * s * batch * m * n / self.memory
                least = min(least, us)
                s //= 2
        return least

    def beside(self, us, moved):
        moved /= self.memory
        low, high = min(us, moved), max(us, moved)
        return high * (1 + (low / high) ** 3.5) ** (1 / 3.5)

    def sizes(self):
        r = self.r
        m, n, k, over = r["m"], r["n"], r["k"], r["stride"] ** 2
        read = min(1, math.sqrt(r["taps"]) / r["stride"])
        if r["pass"] == "input":
            return m * n, m * k / r["taps"], n * k * over
        if r["pass"] == "weight":
            return read * k * over * n / r["taps"], k * m, m * n
        return read * m * over * k / r["taps"], m * n, n * k

    def product(self):
        r = self.r
        m, n, k, taps = r["m"], r["n"], r["k"], r["taps"]
        e, e32 = self.of("64"), self.of("32")
        if r["pass"] == "weight":
            if self.half:
                return min(self.tiles(
                    (1, m, taps * whole(n / taps, tn), k), [(tm, tn, share)], 64)
                    for tm, tn, share in (
                        (128, 128, 1), (128, 64, e), (64, 128, e),
                        (64, 64, e * e), (128, 32, e32), (64, 32, e * e32)
                    )[:1 if self.turing else 6])
            w, wm, wn = (self.x[key] for key in ("weight", "weight_m", "weight_n"))
            return self.tiles((1, m, n, k), (
                (128, 128, w), (64, 128, w * wm), (32, 128, w * wm),
                (128, 64, w * wn), (64, 64, w * wm * wn), (32, 32, w * wn * wn)),
                64)
        if r["pass"] == "input":
            m, k = max(1, m / r["stride"] ** 2), k * r["stride"] ** 2
        if not self.half:
            return self.tiles((1, m, n, k), (
                (128, 128, 1), (128, 64, e), (128, 32, e32)), 1)
        k = taps * whole(k / taps, 32)
        if r["pass"] == "input":
            return self.tiles((1, m, n, k), ((256, 128, 1), (128, 128, 1))
                              if n > 64 else ((256, 64, e), (128, 64, e)), 1)
        return self.tiles((1, m, n, k), (
            (256, 128, 1), (128, 128, 1), (256, 64, e), (128, 64, e),
            (64, 64, e * e)), 32)

    def implicit(self):
        r = self.r
        image, outputs, weight = self.sizes()
        start = 2.5 + 2 * self.of(r["pass"])
        laid = weight / self.memory * (
            self.x["laid"] if r["pass"] != "weight" else self.summed)
        us = self.product()
        if r["pass"] == "input" and r["stride"] > 1:
            return (start * self.of("strided") + laid + self.slower * us +
                    self.of("moved") * self.bytes * image / self.memory)
        return start + laid + self.beside(us, self.bytes * (image + outputs))

    def winograd(self):
        r, (image, outputs, weight) = self.r, self.sizes()
        n, e = r["n"], self.of("64")
        tiles = math.ceil(r["side"] / 4) ** 2
        if r["pass"] == "weight":
            images = max(1, r["k"] / r["side"] ** 2)
            shape, channels = (36, r["m"], n / 9, images * tiles), r["m"] + n / 9
        else:
            images = max(1, r["m"] / r["side"] ** 2)
            shape = (36, whole(images, 16) * tiles, n, r["k"] / 9)
            channels = n + r["k"] / 9
        moved = 4 * 36 * (images * tiles * channels + weight / 9)
        us = self.tiles(shape, ((128, 128, 1), (128, 64, e)), 1,
                        self.x["winograd"])
        return (2.5 + 2 * self.x["winograd_kernels"] +
                (4 * (image + outputs) + moved) / self.memory +
                self.beside(us, moved))

    def fused(self):
        r, (image, outputs, _) = self.r, self.sizes()
        images, side = max(1, r["m"] / r["side"] ** 2), whole(r["side"], 2)
        shape = (1, images * side * side, r["n"], 4 * whole(r["k"] / 9, 8))
        us = self.tiles(shape, ((128, 64, 1),), 1, self.x["fused"])
        return (2.5 + 2 * self.of("forward") +
                self.beside(us, 4 * (image + outputs)))

    def us(self):
        us = self.implicit()
        if self.half or not self.r["three"]:
            return us
        us = min(us, self.winograd())
        return us if self.r["pass"] == "weight" else min(us, self.fused())


def errors(rows, x):
    return [abs(Clock(r, x).us() / r["us"] - 1) for r in rows]


def fit(rows, x):
    """Each format's numbers for itself; what is twice off counts no more."""
    from scipy.optimize import minimize
    for half in (True, False):
        of = [r for r in rows if not r["kept"] and r["half"] == half]
        keys = [key for key in x if key != "laid" and
                key.startswith(("half_", "turing_", "volta")) == half]

        def with_(v):
            return {**x, **{k: math.exp(a) for k, a in zip(keys, v)}}

        def loss(v):
            y = with_(v)
            return np.mean([min(0.6, abs(math.log(Clock(r, y).us() / r["us"])))
                            for r in of]) + 0.003 * sum(
                (a - math.log(NUMBERS[k])) ** 2 for k, a in zip(keys, v))
        v = [math.log(x[key]) for key in keys]
        for _ in range(2):
            v = minimize(loss, v, method="Nelder-Mead",
                         options={"maxiter": 600}).x
        x = with_(v)
    return x


def main(truth, devices, *options):
    rows, x = list(read(truth, devices)), NUMBERS
    if "--rows" in options:
        print("device\tkind\tpass\tm\tn\tk\ttaps\tstride\tside\tthree\t"
              "microseconds")
        for r in rows:
            if r["kept"]:
                print("%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%g" % (
                    r["device"], "half" if r["half"] else "fp32", r["pass"],
                    r["m"], r["n"], r["k"], r["taps"], r["stride"], r["side"],
                    r["three"], r["us"]))
        return
    if "--fit" in options:
        x = fit(rows, x)
        print("\n".join("%-18s%8.3f" % n for n in x.items()))
    for kept in (0, 1):
        for half in (True, False):
            for device in DEVICES.values():
                for name in (*PASSES.values(), ""):
                    of = [r for r in rows if r["kept"] == kept and
                          r["half"] == half and r["device"] == device and
                          name in (r["pass"], "")]
                    error = errors(of, x)
                    print("%-10s%-16s%-5s%-8s%4d rows: median %5.1f %%, 95 of 100 "
                          "%5.1f %%" % (
                              "kept back" if kept else "fitted", device,
                              "half" if half else "fp32", name or "all", len(of),
                              100 * np.median(error),
                              100 * np.quantile(error, 0.95)))


if __name__ == "__main__":
    main(*sys.argv[1:])
