#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Curves of collectives from what nccl-tests measured, and what they are held
against:

    links_fit.py TRUTH [--devices]

prints collectives.tsv: TRUTH is truth/kernels, whose table of aiconfigurator
(NVIDIA, 095f58a51) has NCCL on 2, 4 and 8 GPUs of a node, by bytes.  Sizes from
32 KiB on; of two data types the median.  Every other size, in their order, is
kept back ("report"); of the others ("fit", the first and the last size among
them) a curve is made, without those that took less time than a smaller size, as
more bytes never take less.  --devices writes these into graphs/devices.  L40S is
left out: 8 of them reach 1.6 GB/s, far below their PCIe."""
import collections
import csv
import gzip
import json
import os
import re
import statistics
import sys

DEVICES = {"A100-SXM4-80GB": "a100-80gb-sxm", "H100 80GB HBM3": "h100-80gb-sxm",
           "H200": "h200-141gb-sxm", "B200": "b200-180gb-sxm",
           "GB200": "gb200-186gb"}
KINDS = {"all_gather": "all-gather", "reduce_scatter": "reduce-scatter",
         "alltoall": "all-to-all"}
LEAST = 32 << 10
# Published points of larger sizes (links.tsv): KiB and GB/s.
LARGER = {("h200-141gb-sxm", "all-gather", 8): (16777216, 361.4),
          ("h200-141gb-sxm", "reduce-scatter", 8): (16777216, 362.9)}
SOURCE = ("ai-dynamo/aiconfigurator@095f58a51, systems/data/*/nccl: busbw of "
          "nccl-tests on one node, every other size (tests/truth/links_fit.py)")


def read(truth):
    times = collections.defaultdict(list)
    name = os.path.join(truth, "tables", "aiconfigurator_nccl.csv.gz")
    for row in csv.DictReader(gzip.open(name, "rt")):
        if row["device"] in DEVICES and row["op"] in KINDS:
            times[DEVICES[row["device"]], KINDS[row["op"]], int(row["ranks"]),
                  int(row["bytes"])].append(float(row["us"]))
    curves = collections.defaultdict(list)
    for key in sorted(times):
        if key[3] >= LEAST:
            curves[key[:3]].append((key[3], statistics.median(times[key])))
    return curves


def split(points):
    """(bytes, us, half): the last and every other before it are fitted."""
    n = len(points)
    return [(b, us, "fit" if i in (0, n - 1) or (n - 1 - i) % 2 == 0 else "report")
            for i, (b, us) in enumerate(points)]


def fitted(points):
    """Of the fitted those that took no less time than a smaller one."""
    kept = []
    for b, us, half in points:
        if half != "fit":
            continue
        while kept and kept[-1][1] > us:
            kept.pop()
        kept.append((b, us))
    return kept


def curve(key, points):
    share = 1 - 1 / key[2]
    kib = [b / 1024 for b, _ in points]
    gbps = [float("%.4g" % (share * b / us / 1e3)) for b, us in points]
    # rounding must not make a larger size faster
    for i in range(1, len(points)):
        while points[i][0] / gbps[i] < points[i - 1][0] / gbps[i - 1]:
            gbps[i] = float("%.4g" % (gbps[i] * 0.9995))
    if key in LARGER:
        kib.append(LARGER[key][0])
        gbps.append(LARGER[key][1])
    return {"collective": key[1], "ranks": key[2], "kib": [int(k) for k in kib],
            "gbps": gbps}


def write_devices(curves):
    here = os.path.dirname(os.path.abspath(__file__))
    for device in sorted(set(DEVICES.values())):
        path = os.path.join(here, "..", "..", "graphs", "devices", device + ".json")
        text = open(path).read()
        text = re.sub(r',\n    "collective_curves": \[.*?\n    \],\n'
                      r'    "collective_curve_source": "[^"]*"', "", text,
                      flags=re.S)
        rows = [json.dumps(curve(k, fitted(split(v))))
                for k, v in sorted(curves.items()) if k[0] == device]
        end = text.rstrip()
        assert end.endswith("}")
        text = (end[:-1].rstrip() + ',\n    "collective_curves": [\n        '
                + ",\n        ".join(rows) + '\n    ],\n'
                '    "collective_curve_source": "' + SOURCE + '"\n}\n')
        open(path, "w").write(text)


curves = read(sys.argv[1])
if "--devices" in sys.argv:
    write_devices(curves)
    sys.exit()
print("""# SPDX-License-Identifier: GPL-3.0-or-later
# Times of collectives on 2, 4 and 8 GPUs of a node, in nanoseconds, as
# nccl-tests measured them (ai-dynamo/aiconfigurator@095f58a51); bytes: the whole,
# all ranks together, of an all-to-all what a rank sends and keeps.  half: the
# curves of graphs/devices are of "fit", and "report" is kept back (links_fit.py
# wrote both); point: is it on the curve, exactly?
device	collective	ranks	bytes	half	point	ns""")
for key in sorted(curves):
    points = split(curves[key])
    on = {b for b, _ in fitted(points)}
    for b, us, half in points:
        print(*key, b, half, "yes" if b in on else "no", round(1000 * us), sep="\t")
