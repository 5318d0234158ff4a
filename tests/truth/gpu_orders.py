#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes gpu_orders.tsv from the formulas of recorded blocks:

    python3 tests/truth/gpu_orders.py TRUTH/gpu/symbolic.json \\
        >tests/truth/gpu_orders.tsv
"""

import json
import re
import sys

HEAD = """\
# SPDX-License-Identifier: GPL-3.0-or-later
# Made by gpu_orders.py: what two decoders allocate on a GPU, in order, for
# graphs/basics.graph.json (B 4, T 128, D 1024, H 16, F 4096, V 10000) and
# graphs/kait.graph.json (B 4, T 128, D 2560, H 32, F 10240, V 10000): the
# project's own formulas, each checked against recorded steps
# (truth/gpu/symbolic.json).  A step is embed_forward,
# block_forward per block, head_forward, loss, head_backward, block_backward per
# block, embed_backward; some traces end with head_forward.  Library workspace
# and the scratch of reductions (reductions.tsv) are left out.
model\tsection\tbytes\top"""

BASICS = {"B": 4, "T": 128, "D": 1024, "H": 16, "F": 4096, "V": 10000}
KAIT = {"B": 4, "T": 128, "D": 2560, "H": 32, "F": 10240, "V": 10000}

# model: its formulas, those around its blocks, sizes, the sections of the
# latter, whose formulas hold for the model
WHOLE = ("embed_forward", "head_forward", "loss", "head_backward",
         "embed_backward")
MODELS = {
    "basics": ("basics fp32", "basics fp32", BASICS, WHOLE),
    "kait": ("kait fp32", "kait fp32", KAIT, WHOLE),
    "basics_bf16": ("basics bf16 autocast", "basics bf16 autocast", BASICS,
                    WHOLE),
    "basics_infer": ("basics fp32 no-grad forward", "basics fp32", BASICS,
                     WHOLE[:2]),
    "kait_bf16": ("kait bf16 autocast forward", "kait fp32", KAIT,
                  WHOLE[:1]),
}
# Two formulas give the same size here: the op that is meant, by section.
MEANT = {("loss", "max_dim", "8*T"): "2*BT",
         ("head_backward", "validate:sum_dim_IntList", "8*T"): "2*BT",
         ("block_backward", "LinalgVectorNormBackward0:eq_Scalar", "4*T"):
         "1*BT"}


def evaluate(formula, sizes):
    """Bytes of "4*BTdk/2": a factor, then a product of letters."""
    match = re.fullmatch(r"(\d+)(?:\*(\d+|[A-Zdk]+)(/2)?)?", formula)
    if not match:
        raise ValueError(formula)
    factor, letters, half = match.groups()
    product = int(factor)
    if letters and letters.isdigit():
        product *= int(letters)
    elif letters:
        if "dk" in letters:
            product *= sizes["D"] // sizes["H"]
        for letter in letters.replace("dk", ""):
            product *= sizes[letter]
    return product // 2 if half else product


def write(model, section, allocations, sizes):
    for formula, op, *_ in allocations:
        formula = MEANT.get((section, op, formula), formula)
        print(model, section, evaluate(formula, sizes), op, sep="\t")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        symbolic = json.load(file)
    print(HEAD)
    for model, (block, around, sizes, names) in MODELS.items():
        rows = {name: symbolic[around]["sections"][name] for name in names}
        rows["block_forward"] = symbolic[block]["forward"]["allocs"]
        if names == WHOLE:
            rows["block_backward"] = symbolic[block]["backward"]["allocs"]
        for section in ("embed_forward", "block_forward", "head_forward",
                        "loss", "head_backward", "block_backward",
                        "embed_backward"):
            write(model, section, rows.get(section, []), sizes)


if __name__ == "__main__":
    main()
