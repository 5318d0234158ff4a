# SPDX-License-Identifier: GPL-3.0-or-later
"""Holds the exports of a step against each other and against its report."""
import importlib.util
import json
import pickle
import pickletools
import sys

# The opcodes that MemoryViz.js reads.
KNOWN = """PROTO FRAME EMPTY_DICT EMPTY_LIST EMPTY_TUPLE MARK SETITEM SETITEMS
APPEND APPENDS DICT LIST TUPLE TUPLE1 TUPLE2 TUPLE3 NEWTRUE NEWFALSE NONE BININT
BININT1 BININT2 LONG1 BINFLOAT BINUNICODE SHORT_BINUNICODE BINGET LONG_BINGET
BINPUT LONG_BINPUT MEMOIZE STOP""".split()
PATH = "/usr/lib/python3/dist-packages/torch/cuda/_memory_viz.py"


def check_opcodes(data):
    depth, items = [], []  # of open marks: how many values each has
    for op, _, _ in pickletools.genops(data):
        assert op.name in KNOWN, op.name
        if op.name == "MARK":
            depth.append(0)
        elif op.name in ("APPENDS", "SETITEMS"):
            items.append(depth.pop())
        elif depth and op.name not in ("BINPUT", "LONG_BINPUT", "TUPLE2"):
            depth[-1] += 1
    assert max(items) <= 1000, max(items)


def check_segments(segments):
    for segment in segments:
        at = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == at
            at += block["size"]
            live = block["state"] != "inactive"
            assert bool(block["frames"]) == live and (
                not live or block["requested_size"] <= block["size"])
        assert at == segment["address"] + segment["total_size"] < 2**53


def peak_of(trace):
    """Of requested bytes, as the page draws them."""
    now = peak = 0
    for entry in trace:
        if entry["action"] == "alloc":
            now += entry["size"]
            peak = max(peak, now)
        elif entry["action"] == "free_completed":
            now -= entry["size"]
    return peak


def peak_of_lifetimes(lines):
    events = []
    assert lines[0] == "id,lower,upper,size"
    for i, line in enumerate(lines[1:]):
        name, lower, upper, size = map(int, line.split(","))
        assert name == i and lower < upper and size > 0
        events += [(lower, 1, size), (upper, 0, -size)]
    now = peak = 0
    for _, _, size in sorted(events):
        now += size
        peak = max(peak, now)
    return peak


def stat(alloc, name):
    return alloc["allocators"][0]["stats"][name + ".all"]["peak"]


def check_debian(segments):
    """_memory_viz.py of torch 1.13 takes the list of segments."""
    try:
        spec = importlib.util.spec_from_file_location("memory_viz", PATH)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except FileNotFoundError:
        return "not installed"
    stats = module.stats(segments)
    blocks = [b for s in segments for b in s["blocks"]]
    assert stats["segments"] == len(segments)
    assert stats["active_allocated"].value == sum(
        b["size"] for b in blocks if b["state"] == "active_allocated")
    for draw in module.segments, module.memory:
        text = draw(segments, format_flamegraph=str)
        sums = sum(int(line.split()[-1]) for line in text.splitlines())
        assert sums == stats["total_size"].value
        assert ":start;" in text and "<non-python>" not in text
    return "read"


def leak(keeps):
    """A snapshot of five steps; each may keep 12 MiB of what it caches."""
    size, trace, segments, idle = 12 << 20, [], [], []
    main_frame = {"filename": "/home/me/train.py", "line": 7, "name": "main"}

    def put(action, address, line, name):
        top = {"filename": "/home/me/train.py", "line": line, "name": name}
        hidden = {"filename": "??", "line": 0, "name": "malloc"}
        trace.append({"action": action, "addr": address, "size": size,
                      "stream": 0, "frames": [hidden, top, main_frame]})

    def alloc(line, name):
        if not idle:
            idle.append(0x7F0000000000 + len(segments) * size)
            segments.append({
                "device": 0, "address": idle[0], "total_size": size,
                "stream": 0, "segment_type": "large", "blocks": [{
                    "size": size, "requested_size": size,
                    "state": "inactive"}]})
            put("segment_alloc", idle[0], line, name)
        idle.sort()
        put("alloc", idle[0], line, name)
        return idle.pop(0)

    for _ in range(5):
        made, cached = alloc(12, "forward"), alloc(31, "cache")
        for address in [made] if keeps else [made, cached]:
            put("free_requested", address, 40, "drop")
            put("free_completed", address, 40, "drop")
            idle.append(address)
    for segment in segments:
        if segment["address"] not in idle:
            segment["blocks"][0]["state"] = "active_allocated"
    pickle.dump({"segments": segments, "device_traces": [trace]},
                sys.stdout.buffer, protocol=2)


def steps(folder, anew):
    """Snapshots of four steps of one run, of which each keeps 2 MiB: recording
    begins anew at each, or goes on."""
    size, base, segment = 2 << 20, 0x7F0000000000, 20 << 20
    trace = []
    for step in range(4):
        if anew:
            trace = []

        def put(action, address, bytes_, line, name):
            trace.append({
                "action": action, "addr": address, "size": bytes_, "stream": 0,
                "frames": [{"filename": "/home/me/train.py", "line": line,
                            "name": name}]})
        if step == 0:
            put("segment_alloc", base, segment, 31, "cache")
        put("alloc", base + step * size, size, 31, "cache")
        put("alloc", base + (step + 1) * size, size, 12, "forward")
        put("free_requested", base + (step + 1) * size, size, 40, "drop")
        put("free_completed", base + (step + 1) * size, size, 40, "drop")
        blocks = [{"size": size, "requested_size": size,
                   "address": base + i * size,
                   "state": "active_allocated"} for i in range(step + 1)]
        blocks.append({"size": segment - (step + 1) * size,
                       "requested_size": 0, "state": "inactive",
                       "address": base + (step + 1) * size})
        with open(f"{folder}/step{step}.pickle", "wb") as file:
            pickle.dump({"segments": [{
                "device": 0, "address": base, "total_size": segment,
                "stream": 0, "segment_type": "large", "blocks": blocks}],
                "device_traces": [trace]}, file, protocol=2)


def check_pool(spec, pickle_name, *names):
    """A single step through the run's own pool is what the snapshot has."""
    run, pickled, traced = [json.load(open(name)) for name in names]
    settings = pickle.load(open(pickle_name, "rb"))["allocator_settings"]
    segments = pickle.load(open(pickle_name, "rb"))["segments"]
    conf = settings["PYTORCH_CUDA_ALLOC_CONF"]
    assert conf == "" or conf in spec.replace("=", ":"), conf
    expandable = "expandable_segments:True" in spec
    assert settings["expandable_segments"] == expandable
    assert any(s["is_expandable"] for s in segments) == expandable
    assert settings["max_split_size"] == (
        32 << 20 if "max_split" in spec else -1)
    assert settings["garbage_collection_threshold"] == (
        0.75 if "garbage" in spec else 0)
    for alloc in pickled, traced:
        assert alloc["conf"] == conf
        assert stat(alloc, "allocated_bytes") == run["pool"][
            "allocated_peak_bytes"]
        assert stat(alloc, "reserved_bytes") == run["peak"]["reserved_bytes"]
    assert traced["allocators"][0]["version"] == run["pool"]["version"]


def main():
    if sys.argv[1] == "pool":
        check_pool(*sys.argv[2:])
        return
    if sys.argv[1] == "leak":
        leak(sys.argv[2] == "1")
        return
    if sys.argv[1] == "steps":
        steps(sys.argv[2], sys.argv[3] == "1")
        return
    names = sys.argv[1:]
    data = open(names[0], "rb").read()
    snapshot = pickle.loads(data)
    lines = open(names[1]).read().splitlines()
    run, pickled, traced = [json.load(open(name)) for name in names[2:]]
    check_opcodes(data)
    check_segments(snapshot["segments"])
    trace = snapshot["device_traces"][0]
    categories = {e["category"] for e in trace if "category" in e}
    assert "unknown" in categories and len(categories) > 3
    assert all(e["frames"] for e in trace if e["action"] == "alloc")
    pooled = "pool" in run  # whose blocks are larger than what they hold
    active = run["peak"]["requested_bytes" if pooled else "active_bytes"]
    assert peak_of(trace) == active == peak_of_lifetimes(lines)
    assert pickled["allocators"][0]["recorded"]["differences"] == 0
    for name in "requested_bytes", "allocated_bytes", "reserved_bytes":
        assert stat(pickled, name) == stat(traced, name), name
    assert stat(traced, "requested_bytes") == active
    times = [e["time_us"] for e in trace]
    assert times == sorted(times)
    print(len(trace), "entries;", PATH, check_debian(snapshot["segments"]))


main()
