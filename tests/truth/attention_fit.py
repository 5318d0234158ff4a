#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fits attention by blocks and waves (graphs/machines/times/producttime.c) on half
of the shapes of vLLM's forward in aiconfigurator (causal with a cache, and without
a mask), and says how far off it is on the others and on cuDNN's:

    attention_fit.py TRUTH [--fit]

TRUTH is truth/kernels.  Without --fit the numbers are those of the C file and of
graphs/devices.  What a FlashAttention 3 takes to begin was taken between these
(450 to 525 keys) and its own benchmark (220).  Needs numpy, and scipy to fit."""
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
# TFLOP/s, multiprocessors; forward and backward shares as in graphs/devices.
DEVICES = {"a100-80gb-sxm": (312, 108, 0.6, 0.63),
           "l40s-48gb": (362, 142, 0.59, 0.63),
           "h100-80gb-sxm": (989, 132, 0.676, 0.55),
           "h200-141gb-sxm": (989, 132, 0.676, 0.55),
           "gb200-186gb": (2500, 152, 0.655, 0.55)}
# Keys to begin and to end, us beside the start, shares of 64 and 256 channels.
KERNELS = {"flash2": [200, 1, 0.9, 0.88], "flash3": [420, 4.5, 0.78, 1.08]}
START, UNEVEN, BLOCK = 2.5, 0.55, 128


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
                       "keys": r["s_kv"] / 2 if r["causal"] else r["s_kv"],
                       "d": r["d"], "d_v": r.get("d_v") or r["d"],
                       "us": r["value"]}


def read(truth):
    for r in measured(truth):
        shape = [r[k] for k in ("b", "h", "queries", "keys", "d")]
        kept = r["source"] == "cudnn" or zlib.crc32(str(shape).encode()) % 2
        yield dict(r, half="report" if kept else "fit")


def columns(rows):
    import numpy as np
    table = {k: np.array([r[k] for r in rows], float)
             for k in ("b", "h", "queries", "keys", "d", "d_v", "backward", "us")}
    peak, processors, forward, backward = np.array(
        [DEVICES[r["device"]] for r in rows]).T
    table.update(peak=peak * 1e6, processors=processors,
                 share=np.where(table["backward"] > 0, backward, forward))
    return table


def predict(t, kernel, share):
    import numpy as np
    keys, start, of_64, of_256 = kernel
    d = (t["d"] + t["d_v"]) / 2
    head = np.interp(d, [64, 128, 256], [of_64, 1, of_256]) * np.minimum(1, d / 64)
    pair = np.where(t["backward"] > 0, 10, 4) * d
    key_us = BLOCK * pair * t["processors"] / (t["peak"] * share * head)
    blocks = t["b"] * t["h"] * np.ceil(t["queries"] / BLOCK)
    most = np.maximum(t["keys"], np.minimum(t["queries"], 2 * t["keys"]))
    return START + start + key_us * np.maximum(
        (blocks / t["processors"] + UNEVEN) * (t["keys"] + keys), most + keys)


def fit(rows, device, kernel):
    import numpy as np
    from scipy.optimize import minimize
    t = columns([r for r in rows if r["half"] == "fit"])
    first = np.array([DEVICES[device][2], *KERNELS[kernel]])

    def loss(v):
        x = np.exp(v)
        error = np.abs(np.log(predict(t, x[1:], x[0]) / t["us"]))
        return np.mean(np.minimum(1, error)) + 0.01 * np.sum(
            (v - np.log(first))**2)
    return np.exp(minimize(loss, np.log(first), method="Nelder-Mead",
                           options={"maxiter": 1500}).x)


def main(truth, *options):
    import numpy as np
    rows = list(read(truth))
    for device, source in sorted({(r["device"], r["source"]) for r in rows}):
        of = [r for r in rows if r["device"] == device]
        kernel = of[0]["kernel"]
        x = [None, *KERNELS[kernel]]
        if "--fit" in options and any(r["half"] == "fit" for r in of):
            x = fit(of, device, kernel)
            print("%s %s: share %.3f, keys %.0f, start %.1f us, 64 %.2f, 256 %.2f"
                  % (device, kernel, *x))
        for backward in (False, True):
            kept = [r for r in of if r["source"] == source and
                    r["half"] == "report" and r["backward"] == backward]
            if kept:
                t = columns(kept)
                share = t["share"] if x[0] is None else x[0]
                error = np.abs(predict(t, x[1:], share) / t["us"] - 1)
                print("%-16s%-8s%-9s%5d kept back: median %4.1f %%, 95 of 100 "
                      "%4.1f %%" % (device, source,
                                    "backward" if backward else "forward",
                                    len(error), 100 * np.median(error),
                                    100 * np.quantile(error, 0.95)))


if __name__ == "__main__":
    main(*sys.argv[1:])
