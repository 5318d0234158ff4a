#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps of hf_models.py's networks, for test_hfops.c.  PyTorch 1.13.

    /usr/bin/python3 tests/truth/hf_torch.py > tests/truth/hfops.tsv

Measured as nets_torch.py does, in fp32 and in bf16: only the second shows
what is cast."""

import gc
import sys

import torch

import hf_models
from nets_torch import Whole, events_of, fold, profiled, static_bytes, step
from rules_torch import measure_saved

HEAD = """\
# SPDX-License-Identifier: GPL-3.0-or-later
# Steps of small models with the ops of Hugging Face's modelling code (eager),
# by PyTorch 1.13.1 (CPU, one thread, SGD): the project's own measurements, by
# hf_torch.py.  Columns as in opgraphs.tsv; batch 2, 64 tokens.
case\tprecision\tconfig\tstatic_bytes\tsaved_bytes\tlive_after_fwd_rel\t\
live_after_loss_rel\tlive_after_bwd_rel\tbwd_peak_rel_no_ws\t\
fwd_peak_rel_no_ws"""
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def measure(case, precision):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, ids, loss, labels = hf_models.build(case, DTYPES[precision], 2, 64)
    optimizer = torch.optim.SGD(model.parameters(), 1e-4, foreach=False)
    arguments = model, (ids,), loss, labels, optimizer
    step(*arguments)
    gc.collect()
    gc.disable()
    events = events_of(profiled(*arguments))
    gc.enable()
    saved = measure_saved(Whole(model, loss), (ids, labels))
    return static_bytes(model, (ids,), labels), saved, *fold(events)[:5]


def main():
    print(HEAD)
    for case in sys.argv[1:] or hf_models.CASES:
        for precision in DTYPES:
            numbers = measure(case, precision)
            print(case, precision, hf_models.text(case), *numbers, sep="\t")


if __name__ == "__main__":
    main()
