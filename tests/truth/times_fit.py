#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fits the numbers of a device that kernels alone do not tell on the half of
times.tsv that is called fit, and says how far off the steps are:

    times_fit.py MEMSIM [DEVICES | --leave-out]

A device has at most three: "step_share", of a product's rates alone that a
step's reach (power, cold caches), "step_2_0_share", with older libraries, and, where no kernel was measured, "stream_share", of
the memory's rate.  The loss is the mean error of the device's steps, a source by
the square root of how many it has: they are alike, but not one.
Where it is given graphs/devices, it begins with the numbers there, and goes on
only where the loss falls by GAIN: less is no reason to change every step's time.
--leave-out fits the numbers without each source in turn and prints how far off
its steps of both halves then are (timesleftout.tsv); a device that only this source measured has the number of
its chip's other devices or none (1, 0.85).  What the hosts of Megatron-LM's runs
take (graphs/machines/hostcode.c) stays as it is, and steps with states on the
host, which are bound by it, are left out."""
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

# What is fitted: the devices that share a number, its key, its steps.
FITS = [
    (("a100-80gb-sxm",), "step_share"),
    (("a100-40gb-sxm",), "step_share"),
    (("h100-80gb-sxm",), "step_share"),
    (("h100-80gb-sxm",), "step_2_0_share"),
    (("h100-96gb-sxm",), "step_share"),
    (("b200-180gb-sxm",), "step_share"),
    (("rtx3090-24gb",), "step_share"),
    (("rtx3090-24gb",), "stream_share"),
    (("v100-32gb-sxm2", "v100-16gb-sxm2"), "step_share"),
]
# Where nothing was fitted: the number of the same chip in another module.
SAME_CHIP = {"h100-96gb-sxm": "h100-80gb-sxm",
             "h100-80gb-sxm": "h100-96gb-sxm",
             "a100-40gb-sxm": "a100-80gb-sxm",
             "a100-80gb-sxm": "a100-40gb-sxm"}
# Its steps wait for the host and say nothing of products.
WAITS = "megatron"
NONE = {"step_share": 1.0, "step_2_0_share": 1.0, "stream_share": 0.85}
LEAST, MOST = 0.5, 1.0
GAIN = 0.001
STEP = 0.01
HERE = os.path.dirname(os.path.abspath(__file__))
ALIAS = {"a100": "a100-80gb-sxm", "h100": "h100-80gb-sxm",
         "b200": "b200-180gb-sxm", "v100": "v100-32gb-sxm2", "3090": "rtx3090-24gb"}


def machine_of(device):
    """A device, and what a file says of its links: {key: number}."""
    if not device.endswith(".json"):
        return device, {}
    with open("%s/%s" % (HERE, device)) as file:
        said = json.load(file)
    return said["like"], {k: v for k, v in said.items() if k == "network_gbps"}


def rows():
    with open(HERE + "/times.tsv") as file:
        for line in file:
            if line.startswith(("#", "id\t")):
                continue
            name, half, group, us, options = line.rstrip("\n").split("\t")
            if group == "offload":
                continue
            device = re.search(r"--device (\S+)", options)
            device, links = machine_of(device.group(1) if device else "h100")
            yield {"id": name, "half": half, "source": re.split("_(multi|experts)", group)[0],
                   "group": group, "us": float(us),
                   "device": ALIAS.get(device, device), "links": links,
                   "options": re.sub(r"--device \S+", "", options).split()}


class Clock:
    """Steps by memsim, each set of numbers asked for once."""

    def __init__(self, memsim):
        self.memsim, self.known = os.path.abspath(memsim), {}
        self.folder, self.lock = tempfile.mkdtemp(), Lock()

    def device(self, name, numbers):
        path = "%s/%s" % (self.folder, "_".join(
            [name] + ["%s%g" % kv for kv in sorted(numbers.items())]) + ".json")
        with self.lock:
            if not os.path.exists(path):
                with open(path, "w") as file:
                    json.dump(dict({"like": name}, **numbers), file)
        return path

    def us(self, row, numbers):
        key = row["id"], tuple(sorted(numbers.items()))
        numbers = dict(numbers, **row["links"])
        if key not in self.known:
            text = subprocess.run(
                [self.memsim, "run", *row["options"], "--device",
                 self.device(row["device"], numbers), "--allocator", "exact",
                 "--json"], cwd=HERE, capture_output=True, text=True,
                check=True).stdout
            self.known[key] = int(re.search(r'"step_ns": (\d+)', text)[1]) / 1e3
        return self.known[key]


def numbers_of(device, found):
    """What was found for a device: {key: number}."""
    return {key: value for (devices, key), value in found.items()
            if device in devices}


def errors(clock, steps, found):
    with ThreadPoolExecutor(2) as pool:
        told = list(pool.map(
            lambda r: clock.us(r, numbers_of(r["device"], found)), steps))
    return [abs(t / r["us"] - 1) for t, r in zip(told, steps)]


def loss(clock, steps, found):
    by_source = {}
    for r, e in zip(steps, errors(clock, steps, found)):
        by_source.setdefault(r["source"], []).append(e)
    weights = {s: len(e) ** 0.5 for s, e in by_source.items()}
    return sum(weights[s] * sum(e) / len(e)
               for s, e in by_source.items()) / sum(weights.values())


def best_of(clock, steps, found, what, gain):
    """By halving steps: the loss has one valley."""
    step, at = 0.08, found[what]
    least = first = loss(clock, steps, found)
    while step >= STEP - 1e-9:
        moved = False
        for value in (at - step, at + step):
            value = round(value, 3)
            if not LEAST <= value <= MOST:
                continue
            got = loss(clock, steps, {**found, what: value})
            if got < least - 1e-6:
                least, at, moved = got, value, True
        step = step if moved else step / 2
    return at if least < first - gain else found[what]


def number_of(folder, device, key):
    with open("%s/%s.json" % (folder, device)) as file:
        return json.load(file)[key]


def telling(steps, devices, key):
    """Of an older PyTorch's steps where the device has a number for those."""
    apart = (devices, "step_2_0_share") in FITS and key != "stream_share"
    return [r for r in steps if r["device"] in devices and r["source"] != WAITS
            and (not apart or
                 ("torch-2.0" in r["options"]) == (key == "step_2_0_share"))]


def borrow(steps, found):
    """Devices without steps take what their chip's other module has."""
    for devices, key in FITS:
        other = SAME_CHIP.get(devices[0])
        if other is None or telling(steps, devices, key):
            continue
        for (owners, k), value in list(found.items()):
            if other in owners and k == key and telling(steps, owners, k):
                found[devices, key] = value


def fit(clock, steps, folder=None):
    found = {what: number_of(folder, what[0][0], what[1]) if folder
             else NONE[what[1]] for what in FITS}
    for _ in range(3):
        before = dict(found)
        for what in FITS:
            of = telling(steps, *what)
            if of:
                found[what] = best_of(clock, of, found, what, GAIN if folder else 0)
        if found == before:
            break
    if not folder:
        borrow(steps, found)
    return found


def at(sorted_, share):
    return 100 * sorted_[int(share * (len(sorted_) - 1) + 0.5)]


def spread(got):
    got = sorted(got)
    return at(got, 0.5), at(got, 0.95)


def tell(clock, steps, found):
    for (devices, key), value in found.items():
        print("%-12s %.2f  %s" % (key, value, " ".join(devices)))
    for half in ("fit", "report"):
        for group in sorted({r["group"] for r in steps}):
            of = [r for r in steps if r["half"] == half and r["group"] == group]
            if of:
                print("%s, %-16s%4d steps: median %4.1f %%, 95 of 100 %4.1f %%"
                      % (half, group, len(of),
                         *spread(errors(clock, of, found))))


def leave_out(clock, steps, fitted):
    print("source\tsteps\tmedian\tmost")
    medians = []
    for source in sorted({r["source"] for r in steps}):
        of = [r for r in steps if r["source"] == source]
        found = fit(clock, [r for r in fitted if r["source"] != source])
        median, most = spread(errors(clock, of, found))
        medians.append(median)
        print("%s\t%d\t%.1f\t%.1f" % (source, len(of), median, most))
    print("# median of the sources: %.1f" % sorted(medians)[len(medians) // 2])


def main(memsim, *options):
    clock, steps = Clock(memsim), list(rows())
    fitted = [r for r in steps if r["half"] == "fit"]
    if "--leave-out" in options:
        return leave_out(clock, steps, fitted)
    tell(clock, steps, fit(clock, fitted, *options))


if __name__ == "__main__":
    main(*sys.argv[1:])
