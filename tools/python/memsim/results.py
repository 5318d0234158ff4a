# SPDX-License-Identifier: GPL-3.0-or-later
"""What memsim answers: its JSON as a mapping, and for a step more."""

import array
import collections
import collections.abc
import json
import shlex

from . import errors, program
from .library import Job


# What simulates a step once more: file() opens its model as a path, name is
# what a person would call it.
Again = collections.namedtuple("Again", "file name settings")


class Answer(collections.abc.Mapping):
    """The JSON of a command, read once it is asked for; "memsim schema" tells
    its keys, "memsim help json" explains them.

    .json is the text as the command prints it.
    """

    def __init__(self, text, typed=None):
        self.json = text.decode() if isinstance(text, bytes) else text
        self._typed, self._data = typed, None

    @property
    def command(self):
        """What a person would type for it (the op graph of a Profile is what
        its save() writes); None where a saved file was read."""
        typed = self._typed
        return None if typed is None else shlex.join(["memsim", *typed])

    @property
    def data(self):
        """The whole of it, of dicts and lists."""
        if self._data is None:
            self._data = json.loads(self.json)
        return self._data

    def __getitem__(self, key):
        return self.data[key]

    def __iter__(self):
        return iter(self.data)

    def __len__(self):
        return len(self.data)

    def __repr__(self):
        return f"<{type(self).__name__} of {self.command or 'a file'}>"


class Comparison(Answer):
    """Variants side by side."""

    @property
    def results(self):
        """A Result for each variant, by name."""
        return {name: Result(json.dumps(variant)) for name, variant
                in zip(self["names"], self["variants"])}

    @property
    def rows(self):
        """A dict for each variant, as for a table."""
        return [{"name": name, **result.row}
                for name, result in self.results.items()]


class Fit(Answer):
    """The fastest set-up that fits; where none does, .fits is False and the
    JSON tells what comes nearest."""

    @property
    def fits(self):
        return self["fits"]

    @property
    def best(self):
        """The recommended set-up, a dict; None: none fits."""
        return self["recommendation"]

    @property
    def rows(self):
        """The set-ups between memory and speed, a dict each."""
        return self["rows"]


class Timeline:
    """The memory of a rank over its step, lossless: t_ns[i] is when the level
    became bytes[i].  Two arrays of 64 bits without copies for numpy:

        numpy.asarray(timeline.t_ns), memoryview(timeline.bytes)

    They are in the order in which the host issues.  by_category has the
    columns of the figure, thinned and by device time.
    """

    def __init__(self, t_ns, levels, by_category):
        self.t_ns, self.bytes = t_ns, levels
        self.by_category = by_category

    def __len__(self):
        return len(self.t_ns)


class Result(Answer):
    """A simulated step.  Sizes are bytes, times ns."""

    def __init__(self, text, again=None):
        super().__init__(text)
        self._again = again

    @property
    def command(self):
        if self._again is None:
            return None
        _, name, settings = self._again
        return shlex.join(["memsim", *program.arguments("run", [name],
                                                        **settings)])

    @property
    def peak(self):
        """The highest allocated level, of the rank that has most."""
        return self["peak"]["allocated_bytes"]

    @property
    def reserved(self):
        """What the allocator had from the device at most."""
        return self["peak"]["reserved_bytes"]

    @property
    def breakdown(self):
        """What the peak is made of: category -> bytes."""
        return dict(self["peak"]["by_category"])

    @property
    def step_ns(self):
        return self["time"]["step_ns"]

    @property
    def fits(self):
        return self["fits"]

    @property
    def row(self):
        """A flat dict, for a table."""
        peak, time = self["peak"], self["time"]
        return {
            "model": self["model"], "policy": self["policy"],
            "fits": self.fits, "peak_allocated_bytes": self.peak,
            "peak_reserved_bytes": self.reserved, "phase": peak["phase"],
            **{f"{name}_bytes": size
               for name, size in self.breakdown.items()},
            "step_ns": self.step_ns, "recompute_ns": time["recompute_ns"],
            "tokens_per_second": self["tokens_per_second"],
        }

    @property
    def timeline(self):
        """The Timeline of the rank with the peak."""
        return self.timeline_of(self["peak"]["rank"])

    def timeline_of(self, rank):
        """The Timeline of a rank.  The step is simulated once more: results
        stay small, and keep no model."""
        if self._again is None:
            raise errors.UsageError(
                "timeline", "a saved result has none but that of its figure",
                'result["timeline"] has it; memsim.run() simulates anew')
        file, _, settings = self._again
        with file() as path, Job(path, **settings) as job:
            text, t_ns, levels = job.run_points(rank)
        if text.decode() != self.json:
            raise errors.InputError(
                self["model"], "has changed since it was simulated",
                "call memsim.run() again")
        return Timeline(t_ns, levels, _columns(self["timeline"], rank))

    def plot(self, path=None, figure="timeline", title=None):
        """Draws a figure (timeline, gantt, layers, ranks, pipeline, bars,
        address) into a file by its ending, .svg, .png or .pdf, and returns
        its path.  Without a path: the text of an SVG.  gnuplot draws it."""
        typed = ["plot", "-", "--figure", figure, "-q"]
        if title is not None:
            typed += ["--title", title]
        return _written(typed, path, self.json.encode())

    def to_html(self, path=None):
        """Writes the page of "memsim report" and returns its path; without a
        path: its text.  No gnuplot is needed."""
        if self._again is None:
            return _written(["report", "-"], path, self.json.encode())
        file, _, settings = self._again
        with file() as model:
            typed = program.arguments("report", [model], **settings)
            return _written(typed, path)

    def save(self, path):
        """Writes the JSON, for memsim.load() and the commands plot and
        report."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.json + "\n")
        return path

    def __str__(self):
        return (f"{self['model']} with {self['policy']} on {self['device']}: "
                f"peak {self.peak / 2**30:.2f} GiB in {self['peak']['phase']},"
                f" step {self.step_ns / 1e6:.1f} ms, "
                f"{'fits' if self.fits else 'does not fit'}")


def _columns(timeline, rank):
    """Column -> array of what the figure of a rank draws."""
    points = {row["rank"]: row["points"] for row in timeline["ranks"]}
    found = points.get(rank, next(iter(points.values())))
    return {name: array.array("d" if name == "recompute_flops" else "Q",
                              (row[i] for row in found["rows"]))
            for i, name in enumerate(found["columns"])}


def _written(typed, path, given=None):
    name = "-" if path is None else str(path)
    said = program.run([*typed, "-o", name], given)
    return said.decode() if path is None else path
