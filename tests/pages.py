# SPDX-License-Identifier: GPL-3.0-or-later
"""The laws of pages, without a browser: tests/pages.sh."""

import json
import os
import random
import sys
import tempfile

import pagedata

PIPELINE = ["-p", "pipeline:2,schedule=interleaved,chunks=2+microbatch:4",
            "--gpus", "2", "--batch", "4"]
CASES = [  # words, how many events at least
    (["gpt2", "--batch", "8", "-p", "checkpoint:sqrt"], 2000),
    (["gpt2", "-p", "zero:3,dp=8+offload:optimizer"], 2000),
    (["gpt2", *PIPELINE], 2000),
    (["unet", "--batch", "2", "--device", "4090"], 500),
    (["gpt2-medium", "--batch", "32", "-p", "microbatch:32"], 50001),
    (["lstm-lm", "--set", "training.device=cpu"], 10),
]


def check_step(step, result, tensors_are_all):
    """Levels are those of run --json; tensors lie within them."""
    told = next(rank for rank in result["ranks"] if rank["rank"] == step["rank"])
    best, states = 0, []
    for state, t, levels in pagedata.points(step):
        assert min(levels) >= 0 and 0 <= t, (state, levels)
        best = max(best, sum(levels))
        states.append((state, levels))
    assert best == told["peak"]["allocated_bytes"], (best, told["peak"])
    for state, levels in random.sample(states, min(60, len(states))):
        sums = [0] * 9
        for row in pagedata.alive(step, state):
            sums[row[pagedata.CATEGORY]] += row[pagedata.BYTES]
        for low, high in zip(sums, levels):
            assert low <= high, (state, sums, levels)
            assert not tensors_are_all or low == high, (state, sums, levels)


def check_case(memsim, folder, words, least):
    path, again = (os.path.join(folder, name) for name in ("a.html", "b.html"))
    pagedata.run(memsim, "report", *words, "-q", "-o", path)
    page = pagedata.Page(path)
    page.check()
    result = json.loads(pagedata.run(memsim, "run", *words, "--json"))
    variant, = page.data["variants"]
    step = variant["step"]
    assert step["events"] >= least, step["events"]
    assert (step["shown"] < step["events"]) == (step["events"] > 50000)
    assert variant["fits"] == result["fits"]
    assert step["end"] == result["timeline"]["ranks"][result["ranks"].index(
        next(r for r in result["ranks"] if r["rank"] == step["rank"]))]["end_ns"]
    assert len(step["stages"]) == (2 if "--gpus" in words else 0)
    check_step(step, result, step["tensors"]["hidden"] == 0)
    for row in variant["whatif"]:
        assert row["command"].startswith("memsim run " + words[0]), row
    pagedata.run(memsim, "report", *words, "-q", "-o", path.replace("a.", "b."))
    with open(path, "rb") as one, open(again, "rb") as other:
        assert one.read().replace(b"a.html", b"b.html") == other.read()


def check_command(memsim, folder):
    """The first change of a page does what the page says of it."""
    path = os.path.join(folder, "c.html")
    pagedata.run(memsim, "report", "gpt2", "--batch", "8", "-q", "-o", path)
    for row in pagedata.Page(path).data["variants"][0]["whatif"][:6]:
        result = json.loads(pagedata.run(memsim, *row["command"].split()[1:],
                                         "--json"))
        assert result["peak"]["reserved_bytes"] == row["reserved_bytes"], row
        assert result["time"]["step_ns"] == row["step_ns"], row


def check_front(memsim, folder):
    """The front of a page is that of memsim fit, whatever the policies; each
    command does what its row says."""
    path = os.path.join(folder, "k.html")
    words = ["bert-base", "--batch", "4", "--memory", "6GiB"]
    pagedata.run(memsim, "report", *words, "-p", "none", "-p",
                 "checkpoint:full", "--goal", "step", "-q", "-o", path)
    page = pagedata.Page(path)
    page.check()
    fronts = [variant["front"] for variant in page.data["variants"]]
    assert fronts[0] == fronts[1] and fronts[0]["rows"]
    told = json.loads(pagedata.run(memsim, "fit", *words, "--goal", "step",
                                   "--json"))
    rows = fronts[0]["rows"]
    assert [(row["reserved_bytes"], row["step_ns"]) for row in rows] == \
        [(row["peak_reserved_bytes"], row["step_ns"])
         for row in told["rows"]]
    assert told["command"] in [row["command"] for row in rows if row["best"]]
    for row in (rows[0], rows[-1]):
        result = json.loads(pagedata.run(memsim, *row["command"].split()[1:],
                                         "--json"))
        assert result["peak"]["reserved_bytes"] == row["reserved_bytes"], row
        assert result["time"]["step_ns"] == row["step_ns"], row


def check_saved(memsim, folder):
    """A saved result beside a simulated step; one without a timeline."""
    saved = os.path.join(folder, "saved.json")
    path = os.path.join(folder, "d.html")
    text = pagedata.run(memsim, "run", "gpt2", "--json")
    with open(saved, "w", encoding="utf-8") as file:
        file.write(text)
    pagedata.run(memsim, "report", saved, "gpt2", "-p", "checkpoint:full", "-q",
                 "-o", path)
    page = pagedata.Page(path)
    page.check()
    read, simulated = page.data["variants"]
    best = max(sum(levels) for _, _, levels in pagedata.points(read["step"]))
    assert best == json.loads(text)["peak"]["allocated_bytes"]
    assert read["step"]["tensors"] is None and read["whatif"] == []
    assert simulated["step"]["tensors"]["rows"] and simulated["whatif"]


def check_recorded(memsim, folder):
    """A snapshot of a step has the step's peak, block by block."""
    snapshot, path = (os.path.join(folder, name)
                      for name in ("run.pickle", "f.html"))
    pagedata.run(memsim, "run", "gpt2", "--batch", "2", "-q", "--snapshot",
                 snapshot)
    pagedata.run(memsim, "report", snapshot, "gpt2", "--batch", "2", "-q", "-o",
                 path)
    page = pagedata.Page(path)
    page.check()
    simulated, recorded = (variant["step"] for variant in page.data["variants"])
    best = [max(pagedata.points(step), key=lambda it: sum(it[2]))
            for step in (simulated, recorded)]
    assert sum(best[0][2]) == sum(best[1][2]), best
    alive = [sorted(row[pagedata.BYTES]
                    for row in pagedata.alive(step, state))
             for step, (state, _, _) in zip((simulated, recorded), best)]
    assert alive[0] == alive[1] and sum(alive[1]) == sum(best[1][2])
    assert page.data["variants"][1]["fits"] is None


def check_limit(memsim, folder):
    """More than a page may have is told less finely and counted: the longest
    names, in as many variants as there may be."""
    path = os.path.join(folder, "g.html")
    model = pagedata.write_blocks(folder, 40, "<" * 250)
    policies = ["none", "checkpoint:full", "checkpoint:sqrt", *(
        f"microbatch:{m}" for m in (2, 4, 8, 16, 32))]
    variants = [word for policy in policies for word in ("-p", policy)]
    pagedata.run(memsim, "report", model, "--batch", "32", *variants, "-q",
                 "-o", path)
    page = pagedata.Page(path)
    page.check()
    for policy, variant in zip(policies, page.data["variants"]):
        step, tensors = variant["step"], variant["step"]["tensors"]
        result = json.loads(pagedata.run(
            memsim, "run", model, "--batch", "32", "-p", policy, "--json"))
        assert tensors["rows"] and tensors["hidden"] > 0
        assert 2 * (len(tensors["rows"]) + tensors["hidden"]) >= step["events"]
        assert min(row[pagedata.BYTES] for row in tensors["rows"]) >= \
            tensors["hidden_bytes"]
        check_step(step, result, False)
    assert page.data["variants"][7]["step"]["shown"] < 1000


def check_turns(memsim, folder):
    """Stages with more turns than are told one by one have slices, which cover
    the step."""
    path = os.path.join(folder, "h.html")
    model = pagedata.write_blocks(folder, 4, "part")
    pagedata.run(memsim, "report", model, *pagedata.TURNS, "-q", "-o", path)
    page = pagedata.Page(path)
    page.check()
    step = page.data["variants"][0]["step"]
    assert len(step["stages"]) == 4
    for stage in step["stages"]:
        assert stage["turns"] == [] and stage["hidden"] == 2 * 2600 + 1
        at = 0
        for begin, end, *works in stage["slices"]:
            assert at <= begin < end, (at, begin, end)
            assert sum(works[1::2]) <= end - begin
            at = end
        assert at <= step["end"]


def check_names(memsim, folder):
    for name in pagedata.HOSTILE:
        path = os.path.join(folder, "e.html")
        model = pagedata.write_hostile(folder, name)
        pagedata.run(memsim, "report", model, "-q", "-o", path)
        page = pagedata.Page(path)
        page.check()
        words = page.data["variants"][0]["step"]["tensors"]["words"]
        part = name.replace(".", "").strip()
        assert any(part in word for word in words), (name, words)


def check_side(side, told):
    """Its levels are those of diff --json, at the same places of the axis."""
    states = [(pagedata.place(side["knots"], t), sum(levels))
              for _, t, levels in pagedata.points(side["step"])]
    assert all(a[0] <= b[0] for a, b in zip(states, states[1:]))
    assert max(level for _, level in states) == told["peak_bytes"]
    if side["step"]["shown"] < side["step"]["events"]:
        return
    levels = {(int(at + 1e-6), level) for at, level in states}
    for at, level in zip(told["line_at"], told["line_bytes"]):
        assert (at, level) in levels or (at + 1, level) in levels, (at, level)


def check_tensors(step):
    """Those of a category lie within its level, and are it where all have
    names."""
    for state, _, levels in list(pagedata.points(step))[::97]:
        sums = [0] * 9
        for row in pagedata.alive(step, state):
            sums[row[pagedata.CATEGORY]] += row[pagedata.BYTES]
        for low, high in zip(sums, levels):
            assert low <= high, (state, sums, levels)
            assert step["tensors"]["hidden"] or low == high, (state, sums)


def check_overlay(memsim, folder, *words):
    """The page of a diff says what its JSON does."""
    path = os.path.join(folder, "i.html")
    pagedata.run(memsim, "diff", *words, "--top", "7", "-q", "-o", path)
    page = pagedata.Page(path)
    page.check()
    told = json.loads(pagedata.run(memsim, "diff", *words, "--json"))
    overlay = page.data["overlay"]
    assert overlay["cause"] == told["cause"] and page.data["variants"] == []
    for side, of in zip(overlay["sides"], told["sides"]):
        assert side["peak_bytes"] == of["peak_bytes"]
        check_side(side, of)
        if side["step"]["tensors"] is not None:
            check_tensors(side["step"])
    groups = told["differences"] or []
    assert overlay["differences"] == len(groups)
    assert len(overlay["groups"]) == min(7, len(groups))
    for row, group in zip(overlay["groups"], groups):
        assert row["gap"] == group["difference_bytes"], (row, group)
        assert row["name"] in (group["name"], "allocations without a stack")
        for key in ("category", "phase"):
            assert row[key] == group[key], (row, group)


def check_overlays(memsim, folder):
    snapshot, saved, odd = (os.path.join(folder, name) for name in
                            ("j.pickle", "j.json", "odd.json"))
    pagedata.run(memsim, "run", "gpt2", "-q", "--snapshot", snapshot)
    result = json.loads(pagedata.run(memsim, "run", "gpt2", "--json"))
    for path, policy in ((saved, result["policy"]), (odd, "no-such-policy")):
        with open(path, "w", encoding="utf-8") as file:
            json.dump({**result, "policy": policy}, file)
    model = pagedata.write_hostile(folder, pagedata.HOSTILE[0])
    for words in (["gpt2", "-p", "none", "-p", "checkpoint:sqrt"],
                  [snapshot, "gpt2", "--batch", "2"], [saved, snapshot],
                  [odd, saved], [model, "gpt2"], [snapshot, snapshot],
                  ["gpt2-medium", "--batch", "32", "-p", "microbatch:32", "-p",
                   "microbatch:2"]):
        check_overlay(memsim, folder, *words)


def main():
    memsim = sys.argv[1]
    random.seed(23)
    with tempfile.TemporaryDirectory() as folder:
        for words, least in CASES:
            check_case(memsim, folder, words, least)
        check_command(memsim, folder)
        check_front(memsim, folder)
        check_saved(memsim, folder)
        check_recorded(memsim, folder)
        check_limit(memsim, folder)
        check_turns(memsim, folder)
        check_names(memsim, folder)
        check_overlays(memsim, folder)
    print(f"{len(CASES)} pages are what their steps are")


main()
