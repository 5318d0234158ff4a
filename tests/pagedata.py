# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the pages of memsim report: what pages.py and browser.py share."""

import base64
import hashlib
import json
import os
import re
import subprocess

NONE = -1
NAME, BYTES, CATEGORY, FROM, TO, MADE, READ, FREED, GROUP = range(9)
HOSTILE = ["</script><b>", "<!--<script>", "]]>", "<img src=x onerror=alert(1)>",
           "'\"", "\\u003c", "&lt;", "$x`id`", "\u202eabc", "\u2028x"]


def run(memsim, *words):
    done = subprocess.run([memsim, *words], capture_output=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{words}: exit {done.returncode}: {done.stderr}")
    return done.stdout.decode()


def write_hostile(folder, name):
    """A model whose name, block and layers are called so; its path."""
    part = name.replace(".", "").replace("{}", "").strip() or "x"
    path = os.path.join(folder, "hostile.json")
    model = {"memsim": 1, "name": name, "input": {"shape": [8]}, "layers": [
        {"repeat": 2, "name": part, "layers": [
            {"type": "linear", "out": 8, "name": part}]},
        {"type": "linear", "out": 4}, {"type": "cross_entropy"}]}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(model, file)
    return path


TURNS = ["--gpus", "4", "--batch", "2600", "-p", "pipeline:4+microbatch:2600"]


def write_blocks(folder, n, part):
    """A model of so many small blocks, whose layers are called so; its path."""
    path = os.path.join(folder, "blocks.json")
    model = {"memsim": 1, "input": {"shape": [8]}, "layers": [
        {"repeat": n, "name": part, "layers": [
            {"type": "linear", "out": 8, "name": part}]},
        {"type": "linear", "out": 4}, {"type": "cross_entropy"}]}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(model, file)
    return path


class Page:
    """A page that was written, and what its policy lets run."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        self.length = os.path.getsize(path)
        blocks = re.findall(r"<script([^>]*)>(.*?)</script>", self.text, re.S)
        if [kind for kind, _ in blocks] != [
                ' type="application/json" id="data"', ""]:
            raise SystemExit(f"{path}: scripts {[kind for kind, _ in blocks]}")
        self.data = json.loads(blocks[0][1])
        self.parts = {"script": blocks[1][1], "style": re.search(
            r"<style>(.*?)</style>", self.text, re.S).group(1)}
        self.policy = re.search(r'Policy" content="([^"]*)"',
                                self.text).group(1)

    def check(self):
        for kind, part in self.parts.items():
            digest = hashlib.sha256(part.encode()).digest()
            want = f"{kind}-src 'sha256-{base64.b64encode(digest).decode()}'"
            assert want in self.policy, (want, self.policy)
        assert self.policy.startswith("default-src 'none'")
        assert not re.search(r"https?://|src=|href=|@import|url\(",
                             self.parts["script"] + self.parts["style"])
        assert self.length <= 3_000_000, self.length


def points(step):
    """Of each point its state, its time and its levels by category."""
    flat, at, state, t, levels = step["points"], 0, 0, 0, [0] * 9
    for _ in range(step["shown"]):
        state, t, n = state + flat[at], t + flat[at + 1], flat[at + 2]
        at += 3
        for _ in range(n):
            levels[flat[at]] += flat[at + 1]
            at += 2
        yield state, t, list(levels)
    assert at == len(flat)


def alive(step, state):
    return [row for row in step["tensors"]["rows"]
            if row[FROM] != NONE and row[FROM] <= state
            and (row[TO] == NONE or state < row[TO])]


def place(knots, t):
    """Where on the axis of both an instant of a side lies."""
    before = [knot for knot in knots if knot[0] <= t] or knots[:1]
    behind = knots[knots.index(before[-1]) + 1:] if t >= knots[0][0] else []
    (t0, at0), (t1, at1) = before[-1], (behind or before[-1:])[0]
    return at0 if t1 == t0 else at0 + (at1 - at0) * (t - t0) / (t1 - t0)
