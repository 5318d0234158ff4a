#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why times.tsv has none of vTrain's 1,030 steps of one node: they are sums.

    vtrain_sums.py [VTRAIN_JSON]      default: $MEMSIM_TRUTH/published3/vtrain.json

A step that was run twice never takes the same microsecond.  Of these
  - what twice the data-parallel ranks add is one number for a model and its
    parallel degrees, to the nanosecond, in every batch and micro-batch;
  - those numbers are differences of vTrain's own table of all-reduces, which its
    predictor reads (VIA-Research/vTrain@f8dda84, trace/a100/AR_GPU*_1M_1024M_LUT;
    src/predictor.py, compute_comm_time) at the whole MiB of a rank's parameters;
  - a layer takes the same time whether there are 1, 2 or 4 stages and however many
    ranks, to a millionth: nothing waits, and nothing is computed again.
So data/ground_truth_single.csv has what the predictor told.  The steps on several
nodes (ground_truth_multi.csv) have no such pattern.  Exit status: 0 if all of it
is so."""
import json
import os
import sys
from collections import defaultdict

# Of the table, by MiB and ranks: us.
TABLE = {(244, 1): 0.0, (244, 2): 1394.2, (244, 4): 1842.3}
HERE = os.path.dirname(os.path.abspath(__file__))


def steps(path, node):
    with open(path) as file:
        for row in json.load(file):
            if row["id"].startswith("vtrain_" + node):
                p, m = row["parallel"], row["model"]
                yield {"h": m["hidden"], "layers": m["layers"], "tp": p["tp"],
                       "pp": p["pp"], "dp": p["dp"], "mb": row["microbatch"],
                       "n": row["batch"] // p["dp"] // row["microbatch"],
                       "ns": round(row["value"] * 1e6)}


def added_by_ranks(of):
    """{(hidden, layers, tp, pp, dp, more dp): {ns of each batch}}"""
    alike, added = defaultdict(dict), defaultdict(list)
    for s in of:
        alike[tuple(s[k] for k in ("h", "layers", "tp", "pp", "mb", "n"))][
            s["dp"]] = s["ns"]
    for key, by_dp in alike.items():
        ranks = sorted(by_dp)
        for a, b in zip(ranks, ranks[1:]):
            added[key[:4] + (a, b)].append(by_dp[b] - by_dp[a])
    return {k: v for k, v in added.items() if len(v) > 1}


def times_of_layers(of):
    """{(hidden, tp, microbatch): {ns of a layer in each dp and pp}}"""
    alike, layer = defaultdict(dict), defaultdict(list)
    for s in of:
        alike[s["h"], s["tp"], s["mb"], s["pp"], s["dp"], s["layers"]][
            s["n"]] = s["ns"]
    slopes = defaultdict(dict)
    for (h, tp, mb, pp, dp, layers), by_n in alike.items():
        if len(by_n) > 1:
            a, b = sorted(by_n)[-2:]
            slopes[h, tp, mb, pp, dp][layers] = (by_n[b] - by_n[a]) / (b - a)
    for (h, tp, mb, pp, _), by_layers in slopes.items():
        if len(by_layers) > 1:
            a, b = min(by_layers), max(by_layers)
            layer[h, tp, mb].append(
                (by_layers[b] - by_layers[a]) / (b - a) * pp)
    return layer


def main(path):
    of = list(steps(path, "single"))
    added, layers = added_by_ranks(of), times_of_layers(of)
    apart = max(max(v) - min(v) for v in added.values())
    print("%d steps of one node; %d differences between numbers of ranks in %d "
          "models and degrees: at most %d ns apart"
          % (len(of), sum(map(len, added.values())), len(added), apart))
    told = [(TABLE[244, b] - TABLE[244, a], added[k])
            for k in added for a, b in [k[4:]]
            if k[:4] in ((1024, 12, 1, 2), (1024, 12, 2, 1), (1024, 24, 1, 4))]
    off = max(abs(t * 1000 - ns) for t, all_ns in told for ns in all_ns)
    print("of 244 MiB: %d, at most %d ns from the table" % (
        sum(len(v) for _, v in told), off))
    wide = max(max(v) / min(v) - 1 for v in layers.values() if len(v) > 1)
    print("%d layers by stages and ranks: at most %.0f millionths apart"
          % (sum(map(len, layers.values())), 1e6 * wide))
    return apart > 2 or off > 2 or wide > 1e-4


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:] or [
        os.environ.get("MEMSIM_TRUTH", HERE + "/../../../shared/truth")
        + "/published3/vtrain.json"]))
