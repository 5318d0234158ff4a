#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sample of the measured kernels that nothing was fitted on and that no other
table of this folder has, as kernels.tsv has it:

    kernels.py TRUTH > kernels.tsv

TRUTH is truth/kernels.  Of what rates were fitted on (aiconfigurator's products
in bf16 and attention), the half of the shapes that gemm_fit.py and
attention_fit.py keep back; of NeuSight's products in fp32, DeepBench's, cuDNN's
attention on H200 and GB200 and the casts to fp8, shapes by the same hash.  Left
out: products of less than 64 rows and NeuSight's of less than 400 us, of which 15
to 45 are its host's; sequences of less than 128; attention with a window; cuDNN's
backward with one order of sums (deterministic).  SAMPLE rows of a device and
kind, by their hash."""
import csv
import gzip
import json
import statistics
import sys
import zlib

import attention_fit

SAMPLE = 400
DEVICES = {"A100-SXM4-80GB": "a100-80gb-sxm", "H100 80GB HBM3": "h100-80gb-sxm",
           "H200": "h200-141gb-sxm", "B200": "b200-180gb-sxm",
           "GB200": "gb200-186gb", "L40S": "l40s-48gb",
           "A100-PCIE-40GB": "a100-40gb-pcie", "A100 80GB PCIe": "a100-80gb-pcie",
           "Tesla V100-PCIE-32GB": "v100-32gb-pcie", "Tesla T4": "t4-16gb",
           "L4": "l4-24gb", "V100 (DGX-1)": "v100-16gb-sxm2", "T4": "t4-16gb"}
IN_PRODUCTS = {"a100-80gb-sxm", "h100-80gb-sxm", "h200-141gb-sxm",
               "b200-180gb-sxm"}  # products.tsv
LEAST_ROWS = 64
LEAST_US = 400


def hash_of(values):
    return zlib.crc32(str([float(v) for v in values]).encode())


def table(truth, name):
    with gzip.open("%s/tables/%s.csv.gz" % (truth, name), "rt") as file:
        for row in csv.DictReader(file):
            if row["device"] in DEVICES:
                yield dict(row, device=DEVICES[row["device"]])


def products(truth):
    for r in table(truth, "aiconfigurator_gemm"):
        shape = [int(r[k]) for k in "mnk"]
        if (r["dtype"] in ("bfloat16", "float16") and shape[0] >= LEAST_ROWS and
                r["device"] not in IN_PRODUCTS):
            yield r["device"], "product", "half", [1, *shape], float(r["us"]), shape
    for r in table(truth, "neusight_fp32"):
        if r["op"] in ("linear", "bmm") and float(r["us"]) >= LEAST_US:
            shape = [int(v) for v in r["shape (BxMxNxK or BxH)"].split("x")]
            yield (r["device"], "linear" if r["op"] == "linear" else "batched",
                   "fp32", shape, float(r["us"]), shape)
    with open(truth + "/kernels.json") as file:
        for r in json.load(file):
            if r["kind"] == "gemm" and r["device"] in ("T4", "V100 (DGX-1)"):
                shape = [r[k] for k in "mnk"]
                if min(shape[:2]) >= LEAST_ROWS:
                    half = r["dtype"].startswith("fp16")
                    yield (DEVICES[r["device"]], "deepbench",
                           "half" if half else "fp32", [1, *shape], r["value"],
                           shape)


def attention(truth):
    for r in attention_fit.read(truth):
        if r["half"] == "report":
            shape = [r["b"] * r["h"], r["queries"], r["keys"],
                     (r["d"] + r["d_v"]) / 2]
            yield (r["device"], r["source"], r["kernel"] +
                   ("_backward" if r["backward"] else ""), shape, r["us"], None,
                   attention_fit.beside(r), r["h"] // r["h_kv"])


def casts(truth):
    for r in table(truth, "aiconfigurator_fp8_scale_cast"):
        if r["op"] == "scale_matrix":
            m, k = int(r["m"]), int(r["k"])
            yield r["device"], "cast", "fp8", [3 * m * k, k], float(r["us"]), [m, k]


def main(truth):
    times = {}
    for source in (products, attention, casts):
        for device, kind, form, shape, us, half, *beside in source(truth):
            if half is None or hash_of(half) % 2:
                times.setdefault((device, kind, form), {}).setdefault(
                    tuple(shape), []).append((us, *(beside or (0, 1))))
    print("# SPDX-License-Identifier: GPL-3.0-or-later")
    print("# Measured times of kernels that are kept back (kernels.py wrote it).  Of"
          "\n# products: batch, m, n, k; of attention: heads of all samples, queries,"
          "\n# keys that one sees on average, channels; of casts: bytes,"
          "\n# elements of a row.  beside: us of something else that a row holds;"
          "\n# group: heads that share a head of keys.")
    print("device\tkind\tformat\ta\tb\tc\td\tbeside\tgroup\tmicroseconds")
    for key in sorted(times):
        shapes = sorted(times[key], key=hash_of)[:SAMPLE]
        for shape in sorted(shapes):
            cells = ["%g" % v if v != int(v) else "%d" % v for v in shape]
            of = sorted(times[key][shape])
            us, beside, group = of[(len(of) - 1) // 2]  # they belong together
            if not beside:
                us = statistics.median(t[0] for t in of)
            print("\t".join([*key, *cells, *["0"] * (4 - len(cells)),
                             "%.6g\t%d\t%.6g" % (beside, group, us)]))


if __name__ == "__main__":
    main(*sys.argv[1:])
