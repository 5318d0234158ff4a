# SPDX-License-Identifier: GPL-3.0-or-later
"""Draws models with hostile names and parses the figures: tests/svg.sh."""

import json
import os
import random
import subprocess
import sys
import tempfile
import xml.dom.minidom

NAMES = ["]]>", "]]>]]>", "a]]", "<![CDATA[x", "<b>&amp;", "&#0;", "--><!--",
         "<?x?>", "'\"", "\\", "{/:Bold x", "@x^y_z~&{a}", "%s%n", "\u202e]]>",
         "]\u200b]>", "]]\u0301>", "\ufffe\uffff", "\U0001f600]]>", "$x`id`"]
LETTERS = "]]]>><&!-[CDATA['\"\\{}@^_~\u0301\u200b\u00e9\u4e00\U0001f600 "
FIGURES = ["timeline", "layers"]


def model(name):
    """The name is the model's, a block's and a layer's."""
    part = name.replace(".", "").replace("{}", "").strip() or "x"
    return {"memsim": 1, "name": name, "input": {"shape": [8]}, "layers": [
        {"repeat": 2, "name": part, "layers": [
            {"type": "linear", "out": 8, "name": part}]},
        {"type": "linear", "out": 4}, {"type": "cross_entropy"}]}


def draw(memsim, folder, name, figure):
    path = os.path.join(folder, "model.json")
    picture = os.path.join(folder, "x.svg")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(model(name), file)
    if os.path.exists(picture):
        os.unlink(picture)
    done = subprocess.run([memsim, "run", path, "--quiet", "--figure", figure,
                           "--plot=" + picture], capture_output=True,
                          check=False)
    if done.returncode == 3:
        return False  # a name that is refused
    if done.returncode != 0:
        raise SystemExit(f"{name!r}: exit {done.returncode}: {done.stderr}")
    try:
        xml.dom.minidom.parse(picture)
    except xml.parsers.expat.ExpatError as error:
        raise SystemExit(f"{name!r}, {figure}: {error}") from error
    return True


def main():
    random.seed(17)
    names = NAMES + ["".join(random.choices(LETTERS, k=random.randint(1, 9)))
                     for _ in range(12)]
    drawn = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            for figure in FIGURES:
                drawn += draw(sys.argv[1], folder, name, figure)
    if drawn < len(names):
        raise SystemExit(f"only {drawn} figures of {len(names)} names")
    print(f"{drawn} figures, all of them XML")


if __name__ == "__main__":
    main()
