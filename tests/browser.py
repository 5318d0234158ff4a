# SPDX-License-Identifier: GPL-3.0-or-later
"""Opens pages in headless Chromium and uses them: tests/browser.sh."""

import base64
import collections
import json
import os
import pickle
import random
import re
import subprocess
import sys
import tempfile

import pagedata

BROWSER = "chromium-headless-shell"
LEFT, RIGHT, TOP, HEIGHT = 78, 12, 22, 340  # of pagechart.js: the memory


class Browser:
    """Speaks the DevTools protocol over a pair of pipes."""

    def __init__(self):
        to_read, self.out = os.pipe()
        self.into, to_write = os.pipe()

        def wire():
            os.dup2(to_read, 3)
            os.dup2(to_write, 4)

        self.process = subprocess.Popen(
            [BROWSER, "--no-sandbox", "--disable-gpu",
             "--remote-debugging-pipe", "--window-size=1200,1000"],
            pass_fds=(3, 4, to_read, to_write), preexec_fn=wire,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.buffer, self.number, self.session = b"", 0, None
        self.faults, self.events = [], []
        target = self.call("Target.createTarget", url="about:blank")
        self.session = self.call("Target.attachToTarget", flatten=True,
                                 targetId=target["targetId"])["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")

    def read(self):
        while b"\0" not in self.buffer:
            piece = os.read(self.into, 1 << 20)
            if not piece:
                raise SystemExit("the browser ended")
            self.buffer += piece
        line, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(line)
        method = message.get("method", "")
        if method in ("Runtime.exceptionThrown", "Log.entryAdded",
                      "Runtime.consoleAPICalled"):
            self.faults.append(json.dumps(message["params"])[:400])
        if method:
            self.events.append(method)
        return message

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise SystemExit(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, path):
        self.events.clear()
        self.call("Page.navigate", url="file://" + path)
        while "Page.loadEventFired" not in self.events:
            self.read()

    def ask(self, script):
        answer = self.call("Runtime.evaluate", expression=script,
                           returnByValue=True)
        if "exceptionDetails" in answer:
            raise SystemExit(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def settle(self):
        """Until what was asked for is drawn."""
        self.call("Runtime.evaluate", awaitPromise=True, expression=
                  "new Promise(done => requestAnimationFrame(() => "
                  "requestAnimationFrame(done)))")

    def key(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key,
                      text=key if len(key) == 1 and kind == "keyDown" else "")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def check(self, what):
        if self.faults:
            raise SystemExit(f"{what}: {self.faults}")

    def close(self):
        self.process.kill()
        self.process.wait()


def at(browser):
    return browser.ask("document.getElementById('at').textContent")


def hover_everything(browser, step, words):
    """At the peak, from the bottom to the top: each tensor that is thick enough
    to be pointed at is what the page says."""
    browser.ask("document.querySelector('.chart').scrollIntoView()")
    box = browser.ask("(() => { const b = document.querySelector('.chart')"
                      ".getBoundingClientRect(); return [b.left, b.top, "
                      "b.width]; })()")
    top = browser.ask("charts[0].top")
    states = list(pagedata.points(step))
    state, t, levels = max(states, key=lambda it: sum(it[2]))
    rows, base, seen = pagedata.alive(step, state), 0, 0
    x = box[0] + LEFT + (box[2] - LEFT - RIGHT) * t / step["end"] + 0.5
    for category in browser.ask("data.order"):
        bottom = base
        for row in (it for it in rows if it[pagedata.CATEGORY] == category):
            middle = bottom + row[pagedata.BYTES] / 2
            if row[pagedata.BYTES] / top * HEIGHT > 3:
                browser.mouse("mouseMoved", x, box[1] + TOP +
                              HEIGHT * (1 - middle / top))
                name = words[row[pagedata.NAME]]
                assert f"\n{name}: " in at(browser), (name, at(browser))
                seen += 1
            bottom += row[pagedata.BYTES]
        base += levels[category]
    assert seen >= 4, seen


def use_keys(browser, step, words):
    """The keyboard alone: the peak, its largest tensor, zoom, the next one."""
    browser.ask("document.querySelector('.chart').focus()")
    browser.key("p")
    largest = max(pagedata.alive(step, max(pagedata.points(step), key=lambda it:
                  sum(it[2]))[0]), key=lambda row: row[pagedata.BYTES])
    assert words[largest[pagedata.NAME]] in at(browser), at(browser)
    said = at(browser)
    browser.key("ArrowUp")
    assert at(browser) != said
    for _ in range(4):
        browser.key("+")
    span = browser.ask("charts[0].to - charts[0].from")
    assert abs(span - step["end"] / 16) < 2, (span, step["end"])
    said = at(browser)
    browser.key("ArrowRight")
    assert at(browser) != said
    browser.key("0")
    assert browser.ask("charts[0].to - charts[0].from") == step["end"]


def drag(browser, step):
    box = browser.ask("(() => { const b = document.querySelector('.chart')"
                      ".getBoundingClientRect(); return [b.left, b.top, "
                      "b.width]; })()")
    inner, y = box[2] - LEFT - RIGHT, box[1] + 100
    for kind, part, held in (("mousePressed", 0.25, 1), ("mouseMoved", 0.5, 1),
                             ("mouseReleased", 0.75, 0)):
        browser.mouse(kind, box[0] + LEFT + inner * part, y, button="left",
                      buttons=held, clickCount=1)
    span = browser.ask("charts[0].to - charts[0].from")
    assert abs(span / step["end"] - 0.5) < 0.01, span / step["end"]


def point_at_stages(browser):
    browser.ask("document.querySelector('.chart').scrollIntoView()")
    for rank in (0, 1):
        left, top, y, x = browser.ask(
            "(() => { const b = document.querySelector('.chart')"
            ".getBoundingClientRect(), s = charts[0].stages[%d], "
            "t = s.stage.turns[0]; return [b.left, b.top, s.y, "
            "charts[0].x((t[0] + t[1]) / 2)]; })()" % rank)
        browser.mouse("mouseMoved", left + x, top + y + 10)
        want = f"rank {rank}: forward of micro-batch 0, stage {rank}"
        assert at(browser).startswith(want), at(browser)


def pixels(browser):
    browser.settle()
    return browser.ask("document.querySelector('.chart').toDataURL()")


def look(browser, page):
    """Other colours in the dark; paper has the figure, in the light ones."""
    light = pixels(browser)
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.call("Emulation.setEmulatedMedia", features=dark)
    assert pixels(browser) != light
    browser.call("Emulation.setEmulatedMedia", features=[])
    assert pixels(browser) == light
    paper = base64.b64decode(browser.call("Page.printToPDF")["data"])
    assert paper.startswith(b"%PDF") and len(paper) > 20000, len(paper)
    title = browser.ask("document.title")
    assert title and title in page.data["variants"][0]["title"]


def narrow(browser):
    """On a telephone, too, sentences are read along their lines."""
    browser.call("Emulation.setDeviceMetricsOverride", width=400, height=800,
                 deviceScaleFactor=1, mobile=False)
    browser.settle()
    least = browser.ask("Math.min(...[...document.querySelectorAll('td')]"
                        ".filter(it => it.textContent.length > 40)"
                        ".map(it => it.offsetWidth))")
    assert 120 <= least < 400, least
    browser.call("Emulation.clearDeviceMetricsOverride")


def turn(browser, page):
    """The switch shows the other variant."""
    browser.ask("document.querySelectorAll('input')[1].click()")
    heading = browser.ask("document.querySelector('h1').textContent")
    assert heading == page.data["variants"][1]["title"], heading
    assert browser.ask("charts.length") == 1


def write(memsim, folder, *words):
    path = os.path.join(folder, "page.html")
    pagedata.run(memsim, "report", *words, "-q", "-o", path)
    return path, pagedata.Page(path)


def check_names(memsim, folder, browser):
    for name in pagedata.HOSTILE:
        path, _ = write(memsim, folder, pagedata.write_hostile(folder, name))
        browser.open(path)
        browser.check(name)
        assert browser.ask("document.querySelectorAll('b, img').length") == 0
        part = name.replace(".", "").strip()
        assert part in browser.ask("document.body.textContent"), name


def write_million(folder):
    """A recorded history of a million events, of blocks of many sizes."""
    path, events, alive = os.path.join(folder, "million.pickle"), [], []
    random.seed(23)
    sites = [[{"name": f"layer_{i}", "filename": "model.py", "line": i}]
             for i in range(300)]

    def free(address, size, site):
        for action in ("free_requested", "free_completed"):
            events.append({"action": action, "addr": address, "size": size,
                           "stream": 0, "frames": site})

    for i in range(500_000):
        alive.append(((1 << 40) + (i << 24), 512 * random.randrange(1, 9000),
                      random.choice(sites)))
        address, size, site = alive[-1]
        events.append({"action": "alloc", "addr": address, "size": size,
                       "stream": 0, "frames": site})
        if len(alive) > 600 + i // 1000 % 400:
            free(*alive.pop(random.randrange(len(alive))))
    while alive:
        free(*alive.pop())
    with open(path, "wb") as file:
        pickle.dump({"segments": [], "device_traces": [events],
                     "allocator_settings": {}}, file, protocol=4)
    return path


def check_million(memsim, folder, browser):
    """It is there within a second, and follows the pointer."""
    path, page = write(memsim, folder, write_million(folder))
    page.check()
    step = page.data["variants"][0]["step"]
    assert step["events"] >= 1_000_000 and step["shown"] < 10_000
    browser.open(path)
    browser.settle()
    browser.check("a million events")
    took = browser.ask("performance.getEntriesByType('navigation')[0].duration")
    limit = 1000 * float(os.environ.get("CK_TIMEOUT_MULTIPLIER", "1"))
    assert took < limit, took
    use_keys(browser, step, step["tensors"]["words"])
    each = browser.ask("(() => { const from = performance.now(); for (let i = "
                       "0; i < 50; i++) charts[0].hover(100 + 10 * i, 200); "
                       "return (performance.now() - from) / 50; })()")
    assert each < limit / 10, each
    said = browser.ask("document.body.textContent")
    assert f"Of {step['events']:,} events" in said
    assert f"{step['tensors']['hidden']:,} smaller ones" in said
    return step["events"], took, each


def point_at_slices(memsim, folder, browser):
    """Stages whose turns are too many are pointed at as streams are."""
    path, page = write(memsim, folder, pagedata.write_blocks(folder, 4, "part"),
                       *pagedata.TURNS)
    stage = page.data["variants"][0]["step"]["stages"][3]
    browser.open(path)
    browser.settle()
    browser.check("slices")
    slices = [it for it in stage["slices"] if len(it) > 2]
    begin, end = slices[len(slices) // 2][:2]
    browser.ask("charts[0].hover(charts[0].x(%f), charts[0].stages[3].y + 9)" %
                ((begin + end) / 2))
    assert at(browser).startswith("rank 3, "), at(browser)
    assert "are too many to tell one by one" in browser.ask(
        "document.body.textContent")


def left_over(overlay, states, key):
    """What of each side has no partner of equal key on the other."""
    counts = [collections.Counter(
        key(side["step"]["tensors"], row)
        for row in pagedata.alive(side["step"], state))
        for side, state in zip(overlay["sides"], states)]
    return [counts[0] - counts[1], counts[1] - counts[0]]


def check_differences(browser, overlay):
    """Wherever the cursor is, what is said to differ is what does, and together
    with what has no name it is the difference."""
    def by_name(tensors, row):
        return (row[pagedata.CATEGORY], row[pagedata.BYTES],
                tensors["words"][row[pagedata.NAME]])

    def by_size(_, row):
        return -(-row[pagedata.BYTES] // 512)

    key = by_name if overlay["by_name"] else by_size
    n = browser.ask("charts[0].points.n")
    for point in random.sample(range(n), 40):
        browser.ask(f"charts[0].moveTo({point})")
        states, counts, levels, gaps = browser.ask(
            "(() => { const c = charts[0], f = c.found(); return ["
            "c.sides.map((s, i) => s.points.state[c.points.of[i][f.point]]), "
            "f.groups.map(g => g.count), f.levels, "
            "f.groups.map(g => g.gap)]; })()")
        want = left_over(overlay, states, key)
        for side in (0, 1):
            all_of = sum(want[side].values())
            told = sum(count[side] for count in counts)
            assert told <= all_of, (point, told, all_of)
        if not any(want):
            assert not counts, (point, counts)
        hidden = any(side["step"]["tensors"]["hidden"]
                     for side in overlay["sides"])
        if overlay["by_name"] and not hidden:
            assert sum(gaps) == levels[1] - levels[0], (point, gaps, levels)


def use_overlay(memsim, folder, browser, *words):
    path = os.path.join(folder, "overlay.html")
    pagedata.run(memsim, "diff", *words, "-q", "-o", path)
    page = pagedata.Page(path)
    overlay = page.data["overlay"]
    browser.open(path)
    browser.settle()
    browser.check("overlay")
    browser.ask("document.querySelector('.chart').focus()")
    for key, side in (("a", 0), ("b", 1)):
        browser.key(key)
        assert browser.ask("charts[0].found().levels")[side] == \
            overlay["sides"][side]["peak_bytes"], (key, at(browser))
    browser.key("d")
    widest = browser.ask("charts[0].found().levels")
    assert abs(widest[0] - widest[1]) == browser.ask(
        "Math.max(...charts[0].points.gap)")
    assert at(browser).startswith("A "), at(browser)
    if all(side["step"]["tensors"] for side in overlay["sides"]):
        check_differences(browser, overlay)
    return overlay


def check_overlay(memsim, folder, browser):
    """Two steps on one axis: recorded, simulated and saved; keys, pointer,
    zoom, the dark."""
    snapshot = os.path.join(folder, "overlay.pickle")
    pagedata.run(memsim, "run", "gpt2", "-q", "--snapshot", snapshot)
    odd = os.path.join(folder, "odd.json")
    result = json.loads(pagedata.run(memsim, "run", "gpt2", "--json"))
    with open(odd, "w", encoding="utf-8") as file:
        json.dump({**result, "policy": "no-such-policy"}, file)
    name = pagedata.HOSTILE[0]
    use_overlay(memsim, folder, browser, pagedata.write_hostile(folder, name),
                "gpt2")
    assert browser.ask("document.querySelectorAll('b, img').length") == 0
    use_overlay(memsim, folder, browser, odd, snapshot)
    use_overlay(memsim, folder, browser, "@stacks.pickle".replace(
        "@", os.path.join(os.path.dirname(__file__), "golden/files/")), "gpt2")
    use_overlay(memsim, folder, browser, snapshot, "gpt2", "-p",
                "checkpoint:full")
    browser.key("a")
    assert "A: 12 x 6.00 MiB, activations" in at(browser), at(browser)
    said = at(browser)
    browser.key("ArrowDown")
    assert at(browser) != said
    browser.key("ArrowUp")
    assert at(browser) == said
    for _ in range(4):
        browser.key("+")
    assert abs(browser.ask("charts[0].to - charts[0].from") - 62500) < 2
    browser.key("0")
    box = browser.ask("(() => { const b = document.querySelector('.chart')"
                      ".getBoundingClientRect(); return [b.left, b.top, "
                      "b.width]; })()")
    browser.mouse("mouseMoved", box[0] + LEFT + (box[2] - LEFT - RIGHT) / 8,
                  box[1] + 100)
    assert at(browser) != said and ", forward" in at(browser), at(browser)
    light = pixels(browser)
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.call("Emulation.setEmulatedMedia", features=dark)
    assert pixels(browser) != light
    browser.call("Emulation.setEmulatedMedia", features=dark, media="print")
    assert browser.ask("getComputedStyle(document.querySelector('.tools'))"
                       ".display") == "none"
    browser.call("Emulation.setEmulatedMedia", features=[], media="")
    assert pixels(browser) == light
    million = write_million(folder)
    use_overlay(memsim, folder, browser, million, million)
    each = browser.ask("(() => { const from = performance.now(); for (let i = "
                       "0; i < 50; i++) charts[0].hover(100 + 10 * i, 200); "
                       "return (performance.now() - from) / 50; })()")
    limit = 100 * float(os.environ.get("CK_TIMEOUT_MULTIPLIER", "1"))
    assert each < limit, each
    return each


def main():
    memsim, browser = sys.argv[1], Browser()
    with tempfile.TemporaryDirectory() as folder:
        path, page = write(memsim, folder, "gpt2", "--batch", "8", "-p",
                           "checkpoint:sqrt", "-p", "none")
        step = page.data["variants"][0]["step"]
        words = step["tensors"]["words"]
        browser.open(path)
        browser.check("load")
        hover_everything(browser, step, words)
        use_keys(browser, step, words)
        drag(browser, step)
        browser.open(path)
        look(browser, page)
        narrow(browser)
        turn(browser, page)
        path, _ = write(memsim, folder, "gpt2", "--gpus", "2", "--batch", "4",
                        "-p", "pipeline:2+microbatch:4")
        browser.open(path)
        point_at_stages(browser)
        browser.check("use")
        check_names(memsim, folder, browser)
        point_at_slices(memsim, folder, browser)
        events, took, each = check_million(memsim, folder, browser)
        beside = check_overlay(memsim, folder, browser)
    browser.close()
    version = subprocess.run([BROWSER, "--version"], capture_output=True,
                             check=True).stdout.decode()
    number = re.search(r"[\d.]+", version)
    print(f"pages work in Chromium {number.group(0)}; {events:,} events are "
          f"drawn in {took:.0f} ms, the pointer followed in {each:.1f} ms, "
          f"over two of them in {beside:.1f} ms")


main()
