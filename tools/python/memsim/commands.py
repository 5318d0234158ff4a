# SPDX-License-Identifier: GPL-3.0-or-later
"""run, compare, sweep, fit and what else memsim answers."""

import contextlib
import contextvars
import json
import os

from . import errors, program
from .library import Job
from .profiles import Profile
from .results import Again, Answer, Comparison, Fit, Result

_expected = contextvars.ContextVar("memsim.expect", default=())


def _again(model, settings, variants=False):
    """What opens the model as a path, and the settings that are left."""
    if isinstance(model, Profile):
        file, rest = model.opener(settings, variants)
        return Again(file, model.name, rest)
    name = os.fspath(model)
    if name == "-":
        raise errors.UsageError("", "standard input is no model here",
                                "write it into a file")
    return Again(lambda: contextlib.nullcontext(name), name, settings)


def run(model, *, set=None, **settings):
    """Simulates one training step, as "memsim run" does.

        result = memsim.run("gpt2", batch=8, policy="checkpoint:sqrt")
        result.peak, result.breakdown, result["levels"]["end_bytes"]

    model: a built-in one's name, a file, a folder with a config.json, or what
    memsim.profile() made.  Settings are those of the command line: batch,
    sequence, precision, optimizer, kernels, framework, policy (a list joins
    with +), device, gpus, global_batch, memory, host_memory, nvme, allocator,
    steps, lengths, book, wall, program and every training.KEY; set={...}
    takes keys with dots: set={"model.layers": 4}.
    """
    again = _again(model, {"set": set, **settings})
    with again.file() as path, Job(path, **again.settings) as job:
        result = Result(job.run(), again)
    for seen in _expected.get():
        seen.results.append(result)
    return result


def load(path):
    """The Result in a file that "memsim run --json" or .save() wrote."""
    with open(path, encoding="utf-8") as file:
        return Result(file.read().rstrip("\n"))


def _grid(grid):
    """Options of a mapping: key -> values, or their text."""
    for key, values in (grid or {}).items():
        if isinstance(values, str):
            yield f"{key}={values}"
            continue
        words = [program.word(value) for value in values]
        many = any("," in word for word in words) or key == "policy"
        yield f"{key}=" + (";" if many else ",").join(words)


def _variant(name, settings):
    if not isinstance(settings, str):
        settings = " ".join(f"{key}={program.word(value)}"
                            for key, value in settings.items())
    return f"{name}: {settings}"


@contextlib.contextmanager
def _asked(command, models, grid, variants, settings):
    """The arguments of a command, while its models are files."""
    profiles = sum(isinstance(model, Profile) for model in models)
    if 0 < profiles < len(models):
        raise errors.UsageError("", "a Profile beside other models",
                                "save() it, and give the files")
    with contextlib.ExitStack() as stack:
        opened = [_again(model, settings, True) for model in models]
        rest = opened[0].settings if opened else settings
        yield program.arguments(
            command, [stack.enter_context(each.file()) for each in opened],
            grid=list(_grid(grid)),
            variant=[_variant(*pair) for pair in (variants or {}).items()],
            **rest)


def _answer(kind, command, models, settings, grid=None, variants=None):
    with _asked(command, models, grid, variants, settings) as typed:
        typed.append("--json")
        return kind(program.run(typed).rstrip(b"\n"), typed)


def compare(*models, grid=None, variants=None, **settings):
    """Variants side by side, as "memsim compare": for each policy of a list,
    each value of a grid, each named set of settings.

        both = memsim.compare("gpt2", policy=["none", "checkpoint:sqrt"])
        pandas.DataFrame(both.rows)
        memsim.compare("llama-3-8b", gpus=8, policy="fsdp", variants={
            "full": {}, "LoRA": {"lora.rank": 16}})
    """
    return _answer(Comparison, "compare", models, settings, grid, variants)


def sweep(model, grid, **settings):
    """Many points, as "memsim sweep": a list of dicts in the grid's order.

        rows = memsim.sweep("gpt2", {"batch": [1, 2, 4],
                                     "policy": ["none", "checkpoint:full"]})
        pandas.DataFrame(rows)

    A point that cannot be is a row whose status and message say why.  A
    Profile is a model of its own for each batch and policy of the grid, which
    vary slowest there.
    """
    if isinstance(model, Profile):
        return _profile_rows(model, dict(grid), settings)
    with _asked("sweep", [model], grid, None, settings) as typed:
        said = program.run([*typed, "--json", "-q"])
    return [json.loads(line) for line in said.splitlines()]


def _profile_rows(profile, grid, settings):
    batches = grid.pop("batch", [settings.pop("batch", None)])
    policies = grid.pop("policy", [settings.pop("policy", None) or "none"])
    rows = []
    for batch in batches:
        varied = {} if batch is None else {"training.batch": batch}
        for policy in policies:
            if isinstance(policy, (list, tuple)):
                policy = "+".join(policy)
            again = _again(profile, {"batch": batch, "policy": policy})
            with again.file() as path:
                said = sweep(path, {**grid, "policy": [policy]}, **settings)
            rows += [{**varied, **row} for row in said]
    return [{**row, "point": i + 1} for i, row in enumerate(rows)]


def fit(model, **settings):
    """The fastest set-up that fits, as "memsim fit" proves it.

        found = memsim.fit("llama-3-8b", gpus=8, memory="80GiB")
        found.best, found["command"]
    """
    return _answer(Fit, "fit", [model], settings)


def ask(command, *models, **settings):
    """The JSON of any command of memsim that has --json.

        memsim.ask("inspect", "gpt2")["parameters"]
        memsim.ask("explain", "gpt2", policy="checkpoint:full")
    """
    return _answer(Answer, command, models, settings)


def size(text):
    """Bytes of a size as memsim reads it: "70GiB", "80GB" or a number."""
    if isinstance(text, int):
        return text
    with Job("mlp", memory=text) as job:
        return job.evaluate()["capacity_bytes"]


class expect:
    """Fails, as a test does, where a step of memsim.run() within is larger.

        with memsim.expect(peak="70GiB", step="900ms"):
            memsim.run("llama-3-8b", gpus=8, policy="fsdp+checkpoint:full")

    peak, reserved, host: sizes at most; step: a time at most ("900ms",
    "1.5s"); fits=True: it fits into its device.  The steps within are
    .results.  It speaks at the end of the block, of all of them.
    """

    KEYS = {
        "peak": lambda result: result.peak,
        "reserved": lambda result: result.reserved,
        "host": lambda result: result["host_peak_bytes"],
        "step": lambda result: result.step_ns,
    }

    def __init__(self, peak=None, *, reserved=None, host=None, step=None,
                 fits=None):
        self.limits = {"peak": peak, "reserved": reserved, "host": host,
                       "step": step}
        self.most = {key: (_time if key == "step" else size)(value)
                     for key, value in self.limits.items()
                     if value is not None}
        self.fits, self.results = fits, []

    def __enter__(self):
        self._token = _expected.set((*_expected.get(), self))
        return self

    def __exit__(self, kind, *_):
        _expected.reset(self._token)
        if kind is not None:
            return
        if not self.results:
            raise errors.ExpectationError(
                "memsim.expect: nothing was simulated within it")
        wrong = [line for result in self.results
                 for line in self._wrong(result)]
        if wrong:
            raise errors.ExpectationError("\n".join(wrong))

    def _wrong(self, result):
        for key, most in self.most.items():
            value = self.KEYS[key](result)
            if value > most:
                yield (f"{key} {_shown(key, value)} is more than "
                       f"{self.limits[key]} by {_shown(key, value - most)}: "
                       f"{result.command}")
        if self.fits is not None and result.fits != self.fits:
            yield (f"{'fits' if result.fits else 'does not fit'}: "
                   f"{result.command}")


def _shown(key, value):
    if key == "step":
        return f"{value / 1e6:.3f} ms"
    return f"{value / 2**30:.3f} GiB ({value} bytes)"


def _time(text):
    """ns of a time."""
    for unit, factor in ("ns", 1), ("us", 1e3), ("ms", 1e6), ("s", 1e9):
        if isinstance(text, str) and text.endswith(unit):
            try:
                return float(text[:-len(unit)]) * factor
            except ValueError:
                break
    if isinstance(text, int):
        return text
    raise errors.UsageError("step", f'"{text}" is no time',
                            'for example "900ms", "1.5s" or a number of ns')
