# SPDX-License-Identifier: GPL-3.0-or-later
"""A PyTorch module as a model of memsim, with any batch.

    profile = memsim.profile(module, inputs, loss=F.cross_entropy, target=y)
    profile.run(batch=64, policy="checkpoint:sqrt").peak
    memsim.fit(profile, batch=64)
    profile.save("net.graph.json", batch=64)      # for the command line

The exporter (tools/export_torch.py) runs the module with its own batch, and
with 2 and 3 (5 where it is one of these) on the device "meta", which computes
nothing, or, where the module cannot be there, once more on its own.  Between
two batches each number of the op graph grows by so much a sample; what that
foretells for the third must be what was recorded, number for number, else it
is tried with squares and a fourth batch, and then refused.  The batch of the
inputs, and one sample, are as recorded.
"""

import contextlib
import copy
import functools
import json
import os
import tempfile
from fractions import Fraction

from . import errors
from .library import Job


def profile(module, inputs, loss=None, target=None, batch=True, case=None):
    """Records module(*inputs) and loss(output, target) on the machine at
    hand, in no GPU's memory; returns a Profile.

    inputs: a tensor, a tuple or a dict of keyword arguments.  The first size
    of the first tensor is the batch; tensors that begin with that size, the
    target's too, grow with it.  batch=False keeps it as it is.
    """
    from . import export_torch

    unseen = []
    try:
        own = export_torch.export(module, inputs, loss, target, case=case,
                                  unseen=unseen)
    except export_torch.ExportError as error:
        raise errors.InputError("memsim.profile", str(error)) from error
    if not batch:
        return Profile(own, None, unseen)

    def record(somewhere, size):
        aim = export_torch.of_batch(inputs, target, size)
        if somewhere is not module:
            aim = on_meta(aim)
        return export_torch.export(somewhere, aim[0], loss, aim[1], case=case)

    reason = None
    for somewhere in (weightless, lambda same: same):
        try:
            record_with = functools.partial(record, somewhere(module))
            formula = growing(own, record_with)
            return Profile(own, formula, unseen, alone(record_with))
        except NotSo as error:
            reason = f"the op graph does not grow with the batch: {error}"
        except Exception as error: # whatever the module raises
            reason = f"the module does not run with another batch: {error}"
    raise errors.InputError("memsim.profile", reason,
                            "batch=False keeps the batch of the inputs")


def weightless(module):
    """A copy on the device "meta": it computes nothing."""
    tensors = {id(tensor): tensor.detach().to("meta").requires_grad_(
        tensor.requires_grad) for tensor in module.buffers()}
    for parameter in module.parameters():
        tensors[id(parameter)] = type(parameter)(
            parameter.detach().to("meta"), parameter.requires_grad)
    return copy.deepcopy(module, tensors)


def on_meta(value):
    """The same with its tensors on the device "meta"."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(on_meta, value))
    if isinstance(value, dict):
        return {key: on_meta(item) for key, item in value.items()}
    if not hasattr(value, "is_meta"):
        return value
    return value.detach().to("meta").requires_grad_(value.requires_grad)


def alone(record):
    """The document with one sample, for which PyTorch takes other ways; a
    text: why the module does not run with it."""
    try:
        return record(1)
    except Exception as error: # whatever the module raises
        return str(error)


def growing(own, record):
    """The formula of all batches: by lines, else by squares."""
    recorded = {own["meta"]["batch"]: own}
    for degree in 1, 2:
        for size in 2, 3, 5, 7:
            many = sum(known > 1 for known in recorded)
            if many < degree + 2 and size not in recorded:
                recorded[size] = record(size)
        try:
            return fitted(recorded, degree)
        except NotSo:
            if degree == 2:
                raise
    raise AssertionError


class NotSo(Exception):
    """Two op graphs differ in more than sizes."""


class Grows(tuple):
    """A number that grows: coefficients of 1, batch, batch squared."""


def fitted(recorded, degree):
    """A document whose numbers may grow, which foretells all that were
    recorded."""
    sizes = sorted(size for size in recorded if size > 1)
    nodes = sizes[:degree + 1]
    formula = joined([recorded[size] for size in nodes], nodes, "")
    for size in sizes[degree + 1:]:
        compare(at(formula, size), recorded[size], "")
    return formula


def joined(values, sizes, where):
    first = values[0]
    if any(type(value) is not type(first) for value in values):
        raise NotSo(f"{where} is of another kind")
    if isinstance(first, dict):
        if any(value.keys() != first.keys() for value in values):
            raise NotSo(f"{where} has other parts")
        return {key: joined([value[key] for value in values], sizes,
                            f"{where} {key}") for key in first}
    if isinstance(first, list):
        if any(len(value) != len(first) for value in values):
            parts = " or ".join(str(len(value)) for value in values)
            raise NotSo(f"{where} has {parts} parts")
        return [joined(list(items), sizes, f"{where} {i}")
                for i, items in enumerate(zip(*values))]
    if all(value == first for value in values) or isinstance(first, float):
        return first # scales such as 1/batch do not change memory
    if isinstance(first, bool) or not isinstance(first, int):
        raise NotSo(f"{where} is {' or '.join(map(repr, values))}")
    return Grows(through(sizes, values))


def through(sizes, values):
    """The polynomial through the points: coefficients, lowest first."""
    total = [Fraction(0)] * len(sizes)
    for i, size in enumerate(sizes):
        term = [Fraction(values[i])]
        for other in sizes[:i] + sizes[i + 1:]:
            shifted = [Fraction(0), *term]
            for k, factor in enumerate(term):
                shifted[k] -= other * factor
            term = [factor / (size - other) for factor in shifted]
        total = [a + b for a, b in zip(total, term)]
    return total


def at(formula, batch):
    """The document with a batch."""
    if isinstance(formula, Grows):
        value = sum(factor * batch ** k for k, factor in enumerate(formula))
        return int(value) if value == int(value) else float(value)
    if isinstance(formula, dict):
        return {key: at(value, batch) for key, value in formula.items()}
    if isinstance(formula, list):
        return [at(value, batch) for value in formula]
    return formula


def compare(foretold, seen, where):
    if isinstance(seen, dict) and isinstance(foretold, dict) and (
            seen.keys() == foretold.keys()):
        for key, value in seen.items():
            compare(foretold[key], value, f"{where} {key}")
    elif isinstance(seen, list) and isinstance(foretold, list) and (
            len(seen) == len(foretold)):
        for i, (one, other) in enumerate(zip(foretold, seen)):
            compare(one, other, f"{where} {i}")
    elif foretold != seen and not isinstance(seen, float):
        raise NotSo(f"{where} is {seen!r}, not {foretold!r}")


def check_batch(batch):
    if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
        raise errors.UsageError("batch",
                                f'"{batch}" is no number of samples')


class Profile:
    """What memsim.profile() recorded; a model for every function of memsim.

    batch: of the inputs; name: of the file that it is elsewhere; unseen: what
    the exporter could not see, a sentence each.  It needs PyTorch no more and
    can be pickled.
    """

    def __init__(self, own, formula, unseen, one=None):
        self.batch = own["meta"]["batch"]
        self.unseen = unseen
        self.name = f"{own['case']}.graph.json"
        self._own, self._formula, self._one = own, formula, one

    def document(self, batch=None):
        """The op graph with a batch, as "memsim help files" describes it."""
        if batch in (None, self.batch):
            return self._own
        check_batch(batch)
        if self._formula is None:
            raise errors.UsageError(
                "batch", f"the profile was made with batch=False: it has "
                f"{self.batch} samples", "leave batch=False out")
        if batch > 1:
            return at(self._formula, batch)
        if isinstance(self._one, str):
            raise errors.UsageError(
                "batch", f"the module does not run with one sample: "
                f"{self._one}")
        return self._one

    def save(self, path, batch=None):
        """Writes the op graph with a batch as a file, and returns its path."""
        from . import export_torch

        document = self.document(batch)
        with open(path, "w", encoding="utf-8") as file:
            export_torch.write(document, file)
        return path

    def run(self, **settings):
        """memsim.run() of it."""
        from .commands import run

        return run(self, **settings)

    @contextlib.contextmanager
    def _opened(self, batch):
        """A file of it, for as long as it is asked."""
        with tempfile.TemporaryDirectory(prefix="memsim-") as folder:
            yield self.save(os.path.join(folder, self.name), batch)

    def opener(self, settings, variants):
        """What opens it with the batch of the settings, and the others.
        memsim counts the micro-batches of a step together; with variants, a
        list of policies is one of them each."""
        rest = dict(settings)
        batch, policy = rest.pop("batch", None), rest.get("policy")
        if batch is None:
            return (lambda: self._opened(self.batch)), rest
        check_batch(batch)
        each = policy if variants and isinstance(policy, list) else [policy]
        times = {self._times({"policy": one}) for one in each}
        if len(times) > 1:
            raise errors.UsageError(
                "batch", "policies with other numbers of micro-batches",
                "one command for each")
        part, left = divmod(batch, times.pop())
        if left:
            raise errors.UsageError(
                "batch", f"{batch} samples are no equal micro-batches")
        return (lambda: self._opened(part)), rest

    def _times(self, settings):
        """How many micro-batches a step has."""
        if settings["policy"] is None:
            return 1
        with self._opened(self.batch) as path, Job(path, **settings) as job:
            told = json.loads(job.run())["settings"]["training.batch"]
        return told // self.batch
