#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A training run planned in Python: python3 tests/python/plan.py

From a checkout: PYTHONPATH=build/release/python.
"""

import memsim

MODEL, GPUS = "llama-2-7b", 8

# One step, as it would be now.
now = memsim.run(MODEL, gpus=GPUS, policy="fsdp", batch=4)
print(now)
for category, size in now.breakdown.items():
    print(f"  {category:16} {size / 2**30:7.2f} GiB")

# What policies and batches buy: rows for pandas.DataFrame(rows), or by hand.
rows = memsim.sweep(MODEL, {
    "policy": ["fsdp", "fsdp+checkpoint:full"], "batch": [1, 2, 4, 8],
}, gpus=GPUS, filter="batch<=8")
for row in rows:
    print(f"  {row['policy']:30} batch {row['training.batch']}: "
          f"{row['peak_allocated_bytes'] / 2**30:7.2f} GiB, "
          f"{row['tokens_per_second']:.0f} tokens/s")

# The level of memory over the step, event by event; numpy takes the arrays.
line = now.timeline
highest = max(range(len(line)), key=line.bytes.__getitem__)
print(f"  the peak is event {highest} of {len(line)}, at "
      f"{line.t_ns[highest] / 1e6:.1f} ms")

# What stands in a test of the training code.
try:
    with memsim.expect(peak="30GiB", fits=True):
        memsim.run(MODEL, gpus=GPUS, policy="fsdp+checkpoint:full", batch=16)
except memsim.ExpectationError as error:
    print(f"  {error}")
