#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fits attention by blocks and waves (graphs/machines/times/producttime.c) on half
of the shapes of vLLM's forward in aiconfigurator (causal with a cache, and without
a mask), and says how far off it is on the others and on cuDNN's:

    attention_fit.py TRUTH [--fit flash2|flash3]

TRUTH is truth/kernels.  Without --fit the numbers are those of the C file and of
graphs/devices.  A causal row also holds what vLLM takes to write keys and values
to its cache (reshape_and_cache, a block for each token; CACHES).  Of rows that are
alike but for their heads of keys, those with as many as queries are 1.5 to 4 times
as long, by just that.  FlashAttention 3 packs the queries that share a head of keys
into blocks (of lengths that vary, always), and where blocks leave a fifth of the
multiprocessors idle it splits the keys (hopper/heuristics.h); vLLM has it do both.
What is read and written comes from the cache, where it fits.  64 channels of FlashAttention 2 were taken between these
(0.84) and its own benchmark (0.87).  Needs numpy, and scipy to fit."""
import csv
import gzip
import json
import sys
import zlib

VLLM = {"A100-SXM4-80GB": ("a100-80gb-sxm", "vllm_flash_attn", "flash2"),
        "H100 80GB HBM3": ("h100-80gb-sxm", "vllm_flash_attn_fa3", "flash3"),
        "H200": ("h200-141gb-sxm", "vllm_flash_attn_fa3", "flash3"),
        "L40S": ("l40s-48gb", "vllm_flash_attn_fa2", "flash2")}
CUDNN = {"H200": "h200-141gb-sxm", "GB200": "gb200-186gb"}
LEAST = 128
SPLITS = (2, 4, 8, 16)
SPLIT_US = 5  # of the kernel that sums them
FULL, LEAST_STEPS = 0.8, 4
# TFLOP/s, multiprocessors; forward and backward shares as in graphs/devices.
DEVICES = {"a100-80gb-sxm": (312, 108, 0.598, 0.63),
           "l40s-48gb": (362, 142, 0.661, 0.63),
           "h100-80gb-sxm": (989, 132, 0.696, 0.55),
           "h200-141gb-sxm": (989, 132, 0.696, 0.55),
           "gb200-186gb": (2500, 152, 0.655, 0.55)}
# GB/s that products reach, as there; MiB of L2, of which each half holds all
# (A100, H100, H200).
MEMORY = {"a100-80gb-sxm": (1711, 20), "l40s-48gb": (657, 96),
          "h100-80gb-sxm": (2811, 25), "h200-141gb-sxm": (3912, 25),
          "gb200-186gb": (6280, 126)}
# us, us of a token on each multiprocessor, share of the memory's GB/s, MiB of L2.
CACHES = {"a100-80gb-sxm": (1, 0.315, 0.771, 2039, 40),
          "l40s-48gb": (0.9, 0.151, 0.677, 864, 96),
          "h100-80gb-sxm": (1.23, 0.156, 0.635, 3350, 50),
          "h200-141gb-sxm": (1.6, 0.137, 0.529, 4800, 50)}
L2_RATE = 41e3  # bytes a us and multiprocessor (gemm_fit.py)
# Keys to begin and to end, us to start, waves more under a mask, shares of 64, 96, 192 and 256
# channels, of a small block; how long one alone takes.
KERNELS = {"flash2": [85, 2.5, 0.77, 0.82, 1, 1, 1.03, 0.84],
           "flash3": [285, 7.1, 0.36, 0.78, 0.97, 1.15, 1.15, 1]}
ALONE = {"flash2": 0.7, "flash3": 0.8}
# In backward, at 64, 128 and 256.
BACKWARD = {"flash2": (0.9, 1, 0.88), "flash3": (0.78, 1, 1)}
SMALL = ("l40s-48gb",)  # they have 100 KiB of shared memory


def measured(truth):
    for name, causal in (("causal_attention_forward_bf16", True),
                         ("encoder_attention_forward", False)):
        path = "%s/tables/aiconfigurator_%s.csv.gz" % (truth, name)
        with gzip.open(path, "rt") as file:
            for r in csv.DictReader(file):
                device, kernel, code = VLLM.get(r["device"], (None, None, None))
                s, d = int(r["s"]), int(r["d"])
                if device and s >= LEAST and (not causal or r["kernel"] == kernel):
                    yield {"device": device, "kernel": code, "backward": False,
                           "source": "causal" if causal else "encoder",
                           "b": int(r["b"]), "h": int(r["h"]), "queries": s,
                           "h_kv": int(r.get("h_kv") or r["h"]),
                           "keys": s / 2 if causal else s, "d": d, "d_v": d,
                           "us": float(r["us"])}
    with open(truth + "/kernels.json") as file:
        for r in json.load(file):
            if (r.get("op") == "sdpa cudnn" and r["device"] in CUDNN and
                    r["dtype"] == "bfloat16" and r["d"] > 64 and
                    not (r["pass"] == "bwd" and r["deterministic"])):
                yield {"device": CUDNN[r["device"]], "kernel": "flash3",
                       "backward": r["pass"] == "bwd", "source": "cudnn",
                       "b": r["b"], "h": r["h"], "queries": r["s"],
                       "h_kv": r["h"],
                       "keys": r["s_kv"] / 2 if r["causal"] else r["s_kv"],
                       "d": r["d"], "d_v": r.get("d_v") or r["d"],
                       "us": r["value"]}


def read(truth):
    for r in measured(truth):
        shape = [r[k] for k in ("b", "h", "queries", "keys", "d")]
        kept = r["source"] == "cudnn" or zlib.crc32(str(shape).encode()) % 2
        yield dict(r, half="report" if kept else "fit")


def cache_us(numbers, processors, tokens, size, low=min, high=max):
    """A start, a block for each token, and all bytes from L2 or memory"""
    start, token, share, gbps, mib = numbers
    rate = gbps * 1e3 * share
    there = high(0, low(1, (1 - size / (mib * 2**20)) * 10))
    return (start + tokens * token / processors + size * (1 - there) / rate +
            size * there / high(rate, L2_RATE * processors))


def beside(r):
    """us of the cache in a row"""
    if r["source"] != "causal":
        return 0
    tokens = r["b"] * r["queries"]
    return cache_us(CACHES[r["device"]], DEVICES[r["device"]][1], tokens,
                    8 * tokens * r["d"] * r["h_kv"])


def columns(rows):
    import numpy as np
    table = {k: np.array([r[k] for r in rows], float)
             for k in ("b", "h", "h_kv", "queries", "keys", "d", "d_v", "backward",
                       "us")}
    peak, processors, forward, backward = np.array(
        [DEVICES[r["device"]] for r in rows]).T
    table.update(peak=peak * 1e6, processors=processors,
                 device=np.array([r["device"] for r in rows]),
                 source=np.array([r["source"] for r in rows]),
                 cached=np.array([r["source"] == "causal" for r in rows]),
                 beside=np.array([beside(r) for r in rows]),
                 share=np.where(table["backward"] > 0, backward, forward))
    return table


def moved_us(t):
    import numpy as np
    gbps, mib = np.array([MEMORY[d] for d in t["device"]]).T
    size = 2 * t["b"] * t["queries"] * (t["h"] + t["h_kv"]) * (t["d"] + t["d_v"])
    return cache_us((0, 0, 1, gbps, mib), t["processors"], 0, size, np.minimum,
                    np.maximum)


def predict(t, code, kernel, share):
    """us, without what stands beside"""
    import numpy as np
    keys, start, uneven, *of, small = kernel
    d = (t["d"] + t["d_v"]) / 2
    d = np.where((d > 64) & (d <= 128), np.where(d <= 96, 96, 128), d)
    head = np.interp(d, [64, 96, 128, 192, 256], [*of[:2], 1, *of[2:]])
    head = np.where(t["backward"] > 0, np.interp(d, [64, 128, 256], BACKWARD[code]),
                    head)
    most = np.maximum(t["keys"], np.minimum(t["queries"], 2 * t["keys"]))
    causal = most > t["keys"]
    block = np.where((code == "flash3") & (d <= 96), 192, 128)
    is_small = ((code == "flash2") & np.isin(t["device"], SMALL) &
                ((causal & (d > 64)) | (d > 128)))
    block = np.where(is_small, 64, block)
    is_small &= t["backward"] == 0
    block = np.where(t["backward"] > 0, 128, block)
    step = np.where(d <= (128 if code == "flash3" else 64), 128, 64)
    more = keys + (block + step) / 2 * (most / t["keys"] - 1)
    pair = np.where(t["backward"] > 0, 10, 4) * d * np.minimum(1, d / 64)
    key_us = block * pair * t["processors"] / (
        t["peak"] * share * head * np.where(is_small, small, 1))
    vllm = (code == "flash3") & (t["source"] != "cudnn")
    group = np.where(vllm, t["h"] / t["h_kv"], 1)
    blocks = t["b"] * t["h"] / group * np.ceil(t["queries"] * group / block)
    waves = blocks / t["processors"]
    best = np.inf
    for s in (1, *SPLITS):
        splits = vllm & (waves < FULL) & (most / step > LEAST_STEPS)
        of_waves = np.where(causal, waves * s + uneven, np.ceil(waves * s))
        us = key_us * np.maximum(of_waves * (t["keys"] / s + more),
                                 ALONE[code] * (most / s + more))
        us = np.where(splits | (s == 1), us + (SPLIT_US if s > 1 else 0), np.inf)
        best = np.minimum(best, us)
    return start + np.maximum(best, moved_us(t))


def fit(rows, code):
    """What a kernel has, then of each device its share and its cache."""
    import numpy as np
    from scipy.optimize import minimize
    t = columns([r for r in rows if r["half"] == "fit" and r["kernel"] == code])
    devices = sorted(set(t["device"]))
    at = np.array([devices.index(d) for d in t["device"]])
    tokens = t["b"] * t["queries"]
    size = 8 * tokens * t["d"] * t["h_kv"]
    fixed = np.array([CACHES[d][3:] for d in devices])
    n = len(KERNELS[code])
    first = np.log([*KERNELS[code]] + [
        v for d in devices for v in (DEVICES[d][2], *CACHES[d][:3])])

    def loss(v):
        x = np.exp(v)
        share, *cache = x[n:].reshape(-1, 4).T
        us = predict(t, code, x[:n], share[at]) + np.where(
            t["cached"], cache_us([c[at] for c in (*cache, *fixed.T)],
                                  t["processors"], tokens, size, np.minimum,
                                  np.maximum), 0)
        error = np.minimum(1, np.abs(np.log(us / t["us"])))
        # Devices and masks count alike.
        alike = [np.mean(error[(at == i) & (t["cached"] == c)])
                 for i in range(len(devices)) for c in (False, True)
                 if ((at == i) & (t["cached"] == c)).any()]
        return np.mean(alike) + 0.001 * np.sum((v - first)**2)
    x = np.exp(minimize(loss, first, method="Nelder-Mead",
                        options={"maxiter": 2500, "adaptive": True}).x)
    print(code, " ".join("%.3g" % v for v in x[:n]))
    for i, d in enumerate(devices):
        print("  %s share %.3f, cache %.2f us, %.3f, %.3f" % (
            d, *x[n + 4 * i:n + 4 * i + 4]))


def main(truth, *options):
    import numpy as np
    rows = list(read(truth))
    if "--fit" in options:
        return fit(rows, options[1])
    for device, source in sorted({(r["device"], r["source"]) for r in rows}):
        for backward in (False, True):
            kept = [r for r in rows if r["device"] == device and
                    r["source"] == source and r["half"] == "report" and
                    r["backward"] == backward]
            if kept:
                t, code = columns(kept), kept[0]["kernel"]
                us = predict(t, code, KERNELS[code], t["share"]) + t["beside"]
                error = np.abs(us / t["us"] - 1)
                print("%-16s%-8s%-9s%5d kept back: median %4.1f %%, 95 of 100 "
                      "%4.1f %%" % (device, source,
                                    "backward" if backward else "forward",
                                    len(error), 100 * np.median(error),
                                    100 * np.quantile(error, 0.95)))


if __name__ == "__main__":
    main(*sys.argv[1:])
