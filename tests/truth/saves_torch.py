#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the nodes of whole networks save, as saved_tensors_hooks see it, for
tests/truth/test_saves.c.  PyTorch 1.13 with torchvision 0.14.

    /usr/bin/python3 tests/truth/saves_torch.py > tests/truth/saves.tsv

Every save is counted, whatever shares its storage: number and bytes of all of
them, and of those that are an nn.Parameter itself.
"""

import sys

import torch
from torch.autograd.graph import saved_tensors_hooks

from nets_models import BUILTINS, NETS
from nets_torch import make

HEAD = """\
# What autograd's nodes save in a forward and its loss, save by save, counted by
# the pack hook of PyTorch 1.13.1 (CPU, fp32) with saves_torch.py: the project's
# own measurements.  parameters: saves that are an nn.Parameter itself.
# net: exported (nets.jsonl); builtin: a network that memsim has.
case\tkind\tsaves\tbytes\tparameters\tparameter_bytes"""


def count(model, inputs, loss, target):
    seen = []

    def pack(tensor):
        seen.append((tensor.nelement() * tensor.element_size(),
                     isinstance(tensor, torch.nn.Parameter)))
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        value = loss(model(*inputs), target)
    value.backward()
    own = [size for size, parameter in seen if parameter]
    return len(seen), sum(size for size, _ in seen), len(own), sum(own)


def main():
    print(HEAD)
    for case in sorted({**NETS, **BUILTINS}):
        kind = "builtin" if case in BUILTINS else "net"
        print(case, kind, *count(*make(case)), sep="\t", flush=True)


if __name__ == "__main__":
    sys.exit(main())
