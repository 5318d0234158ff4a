# SPDX-License-Identifier: GPL-3.0-or-later
"""The schemas of `memsim schema` against what memsim reads and prints.

    schema.py MEMSIM SOURCE FOLDER

Models: what the reader takes must be valid, what it refuses must not be, except
for the reasons in CANNOT_SAY.  That holds for the files of the tests, for each
layer type with fields in and out of bounds, and for models of which one value
or key after the other is changed.  Results: what commands print must be valid,
and every key of it must be in the schema.
"""

import copy
import glob
import json
import os
import re
import subprocess
import sys

import jsonschema

MEMSIM, SOURCE, FOLDER = sys.argv[1:]

# Messages of checks of the reader that a schema cannot express.
CANNOT_SAY = [
    r"no multiple of",  # numbers that belong together
    r"chooses a cross entropy|a pooler keeps|the code of another model",
    r"the layers form a cycle|there is no layer|has no output",
    r"two layers are called|duplicate key",
    r"nobody reads|no layer follows|the model is empty",
    r"the input's size is beyond|more than \d+ layers",
    r"a number with a fraction",  # 1e30: an integer for JSON
    # expressions and what they name
    r"cannot be \".*\": |must be .*, but \".*\" is",
    r"there is no template|differ in length|nest too deep",
    # op graphs: ids count from 0, in the order in which ops ran
    r"the id \(they count from 0\)|the id of (its storage|a tensor)",
    r"it (reads|makes) tensor|it reaches element|its strides overflow",
    r"sizes, but \d+ strides|more than 2\^58 elements|\"loss_start\"",
    r"\"args\" has \d+ tensors",  # as many as "in" has
    r"_bytes\" \d+ is less than",  # stages of a chain
    # nodes of a DAG
    r"is that of the node in line|no node has the id|is twice in \"deps\"",
    r"has no bytes, but others|no node takes any time| reads ",
]

# Slow builds check only a part of the documents that are generated here.
EVERY = int(os.environ.get("MEMSIM_SCHEMA_EVERY", "1"))
MOST = 100  # changes of one model

failures = []
made_up = 0
counts = {"taken": 0, "refused": 0, "only the reader": 0, "results": 0}


def memsim(*words, text=None):
    return subprocess.run([MEMSIM, *words], input=text, text=True,
                          capture_output=True, check=False, cwd=FOLDER)


def fail(what):
    failures.append(what)
    print("schema.py:", what, file=sys.stderr)


def schema_of(document):
    schema = json.loads(memsim("schema", document).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


def strict(schema):
    """The same, but keys that are not listed are refused."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: strict(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and "type" in schema:
        closed["additionalProperties"] = False
    return closed


# ---- models


MODEL = jsonschema.Draft202012Validator(schema_of("model"))


def check_model(name, text):
    """The reader and the schema agree on text."""
    run = memsim("inspect", "-", "--dump", "model", text=text)
    try:
        valid = MODEL.is_valid(json.loads(text))
    except (ValueError, RecursionError):
        valid = False  # no JSON: no schema is asked
    first = run.stderr.split("\n")[0]
    if run.returncode not in (0, 3):
        fail(f"{name}: status {run.returncode}: {first}")
    elif run.returncode == 0:
        counts["taken"] += 1
        if not valid:
            error = jsonschema.exceptions.best_match(
                MODEL.iter_errors(json.loads(text)))
            fail(f"{name}: the reader takes it, the schema does not: "
                 f"{error.json_path}: {error.message[:200]}")
    elif not valid:
        counts["refused"] += 1
    elif any(re.search(reason, first) for reason in CANNOT_SAY):
        counts["only the reader"] += 1
    else:
        fail(f"{name}: the schema takes it, the reader does not: {first}")


def check_made_up(name, document):
    global made_up
    made_up += 1
    if made_up % EVERY == 0:
        check_model(name, json.dumps(document))


def check_files():
    found = []
    for folder in ("graphs/models/builtin", "tests/golden/files", "tests/truth",
                   "tests/truth/graphs", "tests/fuzz/corpus/model"):
        found += sorted(glob.glob(f"{SOURCE}/{folder}/*.json"))
    for path in found:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        if len(text) < 1 << 20:  # larger: as its like
            check_model(path[len(SOURCE) + 1:], text)
    for path in glob.glob(f"{SOURCE}/graphs/models/builtin/*.json"):
        name = os.path.basename(path)
        text = memsim("inspect", name, "--dump", "model").stdout
        if not MODEL.is_valid(json.loads(text)):
            fail(f"inspect {name} --dump model is not valid")


def kind_of(field):
    """Where an expression will do, too, the other."""
    return field["type"][0] if isinstance(field["type"], list) \
        else field["type"]


def values_of(field):
    """Values in, at and out of the bounds of a field."""
    items = field.get("items", {})
    low, high = (part.get(key) for part in (items or field,)
                 for key in ("minimum", "maximum"))
    at = [v for v in (low, high) if v is not None]
    beyond = [v for v in ((low or 0) - 1, (high or 0) + 1)
              if -2**63 <= v < 2**63 and v not in at]
    numbers = at + beyond + [2]
    if kind_of(field) == "array":
        return [[n] for n in numbers] + [[], [2] * 7, [2, "x"], 2]
    if kind_of(field) == "string":
        return field.get("enum", []) + ["", "none such", 0, False]
    if kind_of(field) == "boolean":
        return [True, False, 0, "true", None]
    return numbers + [1.5, "2", None, [2]]


def ordinary(field):
    """A value that must be fine."""
    if kind_of(field) == "array":
        return [max(1, field["items"].get("minimum", 1))]
    if kind_of(field) == "string":
        return field.get("enum", [""])[0]
    if kind_of(field) == "boolean":
        return True
    return max(1, field.get("minimum", 1))


def check_layers(schema):
    """Each layer type: inputs, and each field by itself."""
    for name, layer in schema["$defs"].items():
        if not name.startswith("layer."):
            continue
        fields = {key: value for key, value in layer["properties"].items()
                  if key not in ("type", "name", "inputs", "when")}
        inputs = layer["properties"]["inputs"]
        least = inputs["minItems"]
        base = {"type": name[len("layer."):]}
        if inputs.get("maxItems") != 0:
            base["inputs"] = ["input"] * max(least, 1)
        for key in layer["required"]:
            if key != "inputs":
                base[key] = ordinary(fields[key])
        variants = [base, {**base, "none_such": 1}]
        variants += [{k: v for k, v in base.items() if k != key}
                     for key in base]
        variants += [{**base, "inputs": ["input"] * n}
                     for n in range(max(0, least - 1),
                                    inputs.get("maxItems", least + 1) + 2)]
        variants += [{**base, key: value} for key, field in fields.items()
                     for value in values_of(field)]
        for variant in variants:
            check_made_up(json.dumps(variant), {"input": {"shape": [4]},
                                                "layers": [variant]})


def spots(value, path=()):
    """The path of every value of a document."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from spots(value[key], path + (key,))
    elif isinstance(value, list):
        for i in sorted({0, 1, 2, len(value) - 1} & set(range(len(value)))):
            yield from spots(value[i], path + (i,))


def changed(document, path):
    """Documents with another value at path, without it, with another key."""
    for value in (None, True, -1, 0, 3, 10**15, 1.5, "", "x", "a\tb",
                  "y" * 257, [], [1], {}, {"x": 1}):
        copied = copy.deepcopy(document)
        at = copied
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = value
        yield value, copied
    copied = copy.deepcopy(document)
    at = copied
    for step in path[:-1]:
        at = at[step]
    value = at.pop(path[-1])
    yield "(left out)", copied
    if isinstance(at, dict):
        copied = copy.deepcopy(copied)
        at = copied
        for step in path[:-1]:
            at = at[step]
        at["none_such"] = value
        yield "(renamed)", copied


def check_changed():
    """Models of every form, changed in one spot."""
    paths = [f"{SOURCE}/tests/golden/files/{name}.json" for name in
             ("tiny", "tiny-encoder", "tiny-llama", "parameters", "mlp",
              "skip", "moe", "ops")]
    for path in paths:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        cases = [(spot, value, other) for spot in spots(document) if spot
                 for value, other in changed(document, spot)]
        for spot, value, other in cases[::max(1, len(cases) // MOST)]:
            where = ".".join(map(str, spot))
            check_made_up(f"{os.path.basename(path)}: {where}: {value!r:.20}",
                          other)


# ---- results


def check_result(document, *words, statuses=(0,)):
    run = memsim(*words)
    name = " ".join(words)
    if run.returncode not in statuses:
        fail(f"{name}: status {run.returncode}: {run.stderr}")
        return
    counts["results"] += 1
    results = run.stdout.splitlines() if document == "row" else [run.stdout]
    schema = schema_of(document)
    for kind in (schema, strict(schema)):
        check = jsonschema.Draft202012Validator(kind)
        for result in results:
            for error in check.iter_errors(json.loads(result)):
                fail(f"{name}: {error.json_path}: {error.message[:300]}")
                return


def check_results():
    examples = re.findall(r"example: --policy (\S+)",
                          memsim("help", "policies").stdout)
    for policy in examples + ["checkpoint:full+zero:1,dp=8",
                              "checkpoint:sqrt+microbatch:4",
                              "offload:optimizer,to=nvme+zero:3,dp=16"]:
        model = "mixtral-8x7b" if policy.startswith("expert") else "gpt2"
        check_result("result", "run", model, "--json", "--batch", "8", "-p",
                     policy)
    files = f"{SOURCE}/tests/golden/files"
    for words in (["gpt3", "--memory", "80GiB"], ["resnet18"],
                  ["gpt2", "--set", "model.layers=2", "--set",
                   "training.mode=inference"],
                  ["llama-2-7b", "-p", "fsdp", "--gpus", "8"],
                  ["gpt2", "--wall", "--memory", "1GiB"],
                  ["gpt2", "--book", "device"],
                  ["gpt2", "--allocator", "torch"],
                  ["gpt2", "--allocator", "torch", "--memory", "2GiB"],
                  [f"{files}/parameters.json", "--allocator",
                   "torch,expandable_segments=True"],
                  ["gpt2", "-p", "uvm", "--memory", "2GiB"],
                  [f"{files}/ops.json"], [f"{files}/parameters.json"],
                  [f"{files}/names.json"], [f"{files}/lstm.json"],
                  ["gpt2", "--batch", "8", "-p",
                   "checkpoint:optimal,budget=9GiB"],
                  [f"{files}/dag-blocks.json", "-p",
                   "checkpoint:optimal,budget=64"],
                  [f"{files}/unknown.json", "--set",
                   "graph.unknown_op=conservative"]):
        check_result("result", "run", "--json", *words)
    for words in (["gpt2"], ["gpt2", "--at", "backward", "--top", "3"],
                  [f"{files}/ops.json"], ["resnet18", "-p", "swap:te=4"],
                  ["gpt2", "--allocator", "torch,max_split_size_mb=64"],
                  [f"{files}/names.json"]):
        check_result("explain", "explain", "--json", *words)
    for words in (["gpt2", "-p", "none", "-p", "checkpoint:full"],
                  ["gpt2", "-p", "none", "-p", "checkpoint:sqrt",
                   "--explain"],
                  ["gpt2", "resnet18", "--grid", "batch=1,4", "-p",
                   "microbatch:4"],
                  ["gpt2", "--grid", "policy=none;swap:auto,budget=1MiB"]):
        check_result("compare", "compare", "--json", *words)
    check_result("row", "sweep", "gpt2", "--json", "--grid", "batch=1,7",
                 "--grid", "policy=none;microbatch:2;zero:3,dp=8",
                 "--grid", "model.layers=2,3", "--grid", "memory=1GiB,80GiB")
    check_result("row", "sweep", "gpt2", "--json", "--grid", "gpus=1,8",
                 "--grid", "device=a100,h100", "-p", "fsdp")
    check_result("fit", "fit", "gpt2", "--json", "--batch", "8")
    check_result("fit", "fit", "gpt2", "--json", "--memory", "2200MiB",
                 "--gpus", "8", statuses=(0, 6))
    check_result("fit", "fit", "gpt2", "--json", "-p", "none", "--max",
                 "batch", "--memory", "4GiB")
    for words in (["--allocator=torch", "--lengths=512,256", "--steps=3"],
                  ["--allocator=torch", "--memory=2GiB", "--lengths=2x64"],
                  ["--allocator=torch,expandable_segments:True"]):
        check_result("result", "run", "gpt2", "--json", *words)
    for words in (["gpt2", "--batch", "8"], ["chain.json", "--budget", "12"],
                  ["unet"]):
        if words[0] == "chain.json":
            words[0] = f"{SOURCE}/tests/golden/files/chain.json"
        check_result("front", "compare", "--json", "--checkpoint-all", *words)
    check_result("compare", "compare", "gpt2", "--json", "--allocators",
                 "exact;torch;torch,max_split_size_mb:64")
    check_result("row", "sweep", "gpt2", "--json", "--grid",
                 "lengths=512,64;64", "--grid", "allocator=exact;torch,va:bump")
    check_result("fit", "fit", "gpt2", "--json", "--allocator", "torch",
                 "-p", "none")
    with open(f"{FOLDER}/leaks.txt", "w", encoding="utf-8") as trace:
        for step in range(6):
            trace.write(f"P\na {step} 3000000\n")
    for words in ([f"{files}/alloc.txt"], ["leaks.txt", "--leaks"],
                  [f"{files}/recorded.json"],
                  [f"{files}/recorded.json", "--allocator=torch,va=down",
                   "--anew", "--allocator=bfc", "--allocator=buddy",
                   "--allocator=contiguous"],
                  [f"{files}/alloc.txt", "--allocator",
                   "torch,version=1.13"]):
        check_result("alloc", "alloc", "--json", *words)
    stacks = [f"{files}/stacks.pickle", f"{files}/stacks-keeps.pickle"]
    for words in ([*stacks, "--allocator", "torch,va=bump"],
                  [f"{files}/alloc.txt", stacks[0], stacks[1], "--leaks",
                   "--allocator=torch", "--allocator=bfc"],
                  [f"{files}/alloc.txt"] * 2):
        check_result("traces", "alloc", "--json", *words)
    for words in (["kineto.json", "--check"], ["kineto.json"], ["rates.csv"]):
        check_result("calibrate", "calibrate", "--json", "--device", "h100",
                     f"{files}/{words[0]}", *words[1:])
    check_result("plans", "alloc", "--json", f"{files}/alloc.txt",
                 "--allocator", "arena", "--allocator", "arena,order=exact")
    pickles = [f"{files}/stacks.pickle", f"{files}/stacks-keeps.pickle"]
    for words in (pickles, [pickles[0], "gpt2"], ["gpt2", "-p", "none", "-p",
                                                  "checkpoint:full"]):
        check_result("diff", "diff", "--json", *words)
    with open(f"{FOLDER}/cases.json", "w", encoding="utf-8") as cases:
        json.dump({"memsim_checks": 1, "cases": [
            {"name": "limited", "model": "gpt2", "limit": "75GiB"},
            {"name": "refused", "model": "gpt2",
             "settings": {"batch": 3, "policy": "microbatch:2"}}]}, cases)
    memsim("check", "cases.json", "--update", "--quiet")
    check_result("check", "check", "--json", "cases.json", statuses=(1,))
    for model in ("gpt2", "mixtral-8x7b", f"{files}/ops.json"):
        check_result("inspect", "inspect", "--json", model)
    for document, command in (("result", "run"), ("explain", "explain"),
                              ("fit", "fit"), ("inspect", "inspect")):
        check_result(document, command, "--json", "gpt2", "--from",
                     f"{files}/from/ds_config.json", "--from",
                     f"{files}/from/training_args.json")


# ---- help names what the schemas name


def names_of(topic, pattern):
    return set(re.findall(pattern, memsim("help", topic).stdout, re.M))


def check_equal(what, one, other):
    if one != other:
        fail(f"{what}: {sorted(one ^ other)} in one of the two only")


def check_help(schema):
    layers = {name[len("layer."):] for name in schema["$defs"]
              if name.startswith("layer.")}
    check_equal("layer types", layers, names_of("layers", r"^(\w+): "))
    for layer in layers:
        fields = set(schema["$defs"][f"layer.{layer}"]["properties"])
        check_equal(layer, fields - {"type", "name", "inputs", "when"},
                    names_of(layer, r"^  (\w+)="))
    families = schema["$defs"]["family"]["properties"]["family"]["enum"]
    check_equal("families", set(families), names_of("families", r"^(\w+): "))
    for family in families:
        fields = schema["$defs"][family]["properties"]
        fields = fields.get("config", {}).get("properties", fields)
        check_equal(family, set(fields) -
                    {"memsim", "name", "summary", "family"},
                    names_of(family, r"^  (\w+)="))
    settings = schema_of("result")["$defs"]["settings"]["properties"]
    check_equal("settings", {key.removeprefix("training.") for key in settings
                             if "." in key},
                names_of("training", r"^  ([\w.]+)="))
    told = " ".join(memsim("help", "json").stdout.split())
    for document in ("result", "explain", "compare", "front", "row", "fit",
                     "inspect", "alloc", "traces", "plans",
                 "calibrate", "check", "diff"):
        for key in schema_of(document)["required"]:
            if not re.search(rf"\b{key}\b", told):
                fail(f"help json does not tell of {key}")


def main():
    schema = schema_of("model")
    check_help(schema)
    check_files()
    check_layers(schema)
    check_changed()
    check_results()
    print(", ".join(f"{n} {what}" for what, n in counts.items()))
    for what, n in counts.items():
        if n < 20 and EVERY == 1:
            fail(f"only {n} {what}: what was tested?")
    sys.exit(1 if failures else 0)


main()
