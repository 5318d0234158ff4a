# SPDX-License-Identifier: GPL-3.0-or-later
"""libmemsim by ctypes: jobs, as memsim.h describes them.

    with memsim.Job("gpt2", policy="checkpoint:sqrt") as job:
        for batch in 1, 2, 4:
            job.set("batch", batch)
            print(batch, job.peak()["peak_allocated_bytes"])

A job keeps the model and graphs that it made, so a loop over policies or
batches is fast.  Threads may share one: they take turns.  While it simulates
other threads of Python run.
"""

import array
import ctypes
import os
import threading

from . import errors

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = "libmemsim.so.1"
CATEGORIES = ("parameters", "optimizer_state", "gradients", "inputs",
              "activations", "temporaries", "workspace", "communication")


class Numbers(ctypes.Structure):
    """memsim_numbers."""

    _fields_ = [
        ("size", ctypes.c_size_t), ("fits", ctypes.c_int32),
        ("ranks", ctypes.c_uint32),
        ("peak_allocated_bytes", ctypes.c_uint64),
        ("peak_reserved_bytes", ctypes.c_uint64),
        ("capacity_bytes", ctypes.c_uint64),
        ("context_bytes", ctypes.c_uint64),
        ("host_peak_bytes", ctypes.c_uint64),
        ("by_category", ctypes.c_uint64 * len(CATEGORIES)),
        ("step_ns", ctypes.c_uint64), ("recompute_ns", ctypes.c_uint64),
        ("stall_ns", ctypes.c_uint64), ("exposed_comm_ns", ctypes.c_uint64),
        ("tokens_per_second", ctypes.c_double),
    ]


class Brief(ctypes.Structure):
    """memsim_brief."""

    _fields_ = [
        ("size", ctypes.c_size_t), ("fits", ctypes.c_int32),
        ("peak_allocated_bytes", ctypes.c_uint64),
        ("step_ns", ctypes.c_uint64), ("recompute_ns", ctypes.c_uint64),
        ("tokens_per_second", ctypes.c_double),
    ]


FUNCTIONS = { # result, arguments
    "memsim_version": (ctypes.c_char_p, ()),
    "memsim_abi": (ctypes.c_int, ()),
    "memsim_open": (ctypes.c_void_p, (ctypes.c_char_p,)),
    "memsim_copy": (ctypes.c_void_p, (ctypes.c_void_p,)),
    "memsim_free": (None, (ctypes.c_void_p,)),
    "memsim_set": (ctypes.c_int, (ctypes.c_void_p, ctypes.c_char_p,
                                  ctypes.c_char_p)),
    "memsim_evaluate": (ctypes.c_int, (ctypes.c_void_p,
                                       ctypes.POINTER(Numbers))),
    "memsim_peak": (ctypes.c_int, (ctypes.c_void_p, ctypes.POINTER(Brief))),
    "memsim_run": (ctypes.c_char_p, (ctypes.c_void_p,)),
    "memsim_points": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_uint32,
                                        ctypes.POINTER(ctypes.c_size_t))),
    "memsim_fault": (ctypes.c_int, (ctypes.c_void_p,)),
    "memsim_where": (ctypes.c_char_p, (ctypes.c_void_p,)),
    "memsim_what": (ctypes.c_char_p, (ctypes.c_void_p,)),
    "memsim_hint": (ctypes.c_char_p, (ctypes.c_void_p,)),
}


def bundled(*places):
    """The first file that is there: beside this one in a wheel, or where this
    is PREFIX/lib/python3/dist-packages/memsim."""
    paths = (os.path.normpath(os.path.join(HERE, place)) for place in places)
    return next(filter(os.path.exists, paths), None)


def load():
    """The library: MEMSIM_LIBRARY, the one that came along, the system's."""
    path = (os.environ.get("MEMSIM_LIBRARY")
            or bundled(NAME, f"../../../{NAME}") or NAME)
    try:
        found = ctypes.CDLL(path)
        for name, (result, arguments) in FUNCTIONS.items():
            function = getattr(found, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        hint = ("install memsim's wheel or package, or set MEMSIM_LIBRARY to "
                "the path of libmemsim.so")
        if "GLIBC_" in str(error):
            hint = ("the C library here is older than the one it was built "
                    "for: build it here (sh tools/python/wheel.sh), or use "
                    "the program, which needs none")
        raise ImportError(f"{path}: {error}\n  {hint}") from error
    return found


LIBRARY = load()
VERSION = LIBRARY.memsim_version().decode()


def word(value):
    """A value as the command line spells it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(word(item) for item in value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return str(value)


def encode(text):
    """Text for C: a path may have any bytes but zero."""
    raw = os.fsencode(text)
    if b"\0" in raw:
        raise errors.UsageError("", "a zero byte in " + ascii(text))
    return raw


class Job:
    """One job of libmemsim; settings as memsim.run() takes them."""

    def __init__(self, model, set=None, **settings):
        self._lock = threading.Lock()
        self._job = LIBRARY.memsim_open(encode(os.fspath(model)))
        if not self._job:
            raise errors.NoMemoryError("", "out of memory")
        try:
            for key, value in {**(set or {}), **settings}.items():
                self.set(key, value)
        except BaseException:
            self.close()
            raise

    def set(self, key, value):
        """Sets a key of the command line; None takes it back."""
        if isinstance(value, (list, tuple)) and key == "policy":
            value = "+".join(word(item) for item in value)
        raw = None if value is None else encode(word(value))
        with self._lock:
            self._check(LIBRARY.memsim_set(self._open(), encode(key), raw))

    def evaluate(self):
        """The numbers of the step as a dict, without its text: fast."""
        numbers = Numbers(size=ctypes.sizeof(Numbers))
        with self._lock:
            self._check(LIBRARY.memsim_evaluate(self._open(),
                                                ctypes.byref(numbers)))
        said = _members(numbers)
        said["by_category"] = dict(zip(CATEGORIES, numbers.by_category))
        return said

    def peak(self):
        """Peak and time alone, with bare lifetimes: faster still."""
        brief = Brief(size=ctypes.sizeof(Brief))
        with self._lock:
            self._check(LIBRARY.memsim_peak(self._open(),
                                            ctypes.byref(brief)))
        return _members(brief)

    def run(self):
        """The text that "memsim run --json" prints, as bytes."""
        with self._lock:
            return self._run()

    def _run(self):
        text = LIBRARY.memsim_run(self._open())
        if text is None:
            self._check(LIBRARY.memsim_fault(self._job) or 7)
        return text

    def run_points(self, rank):
        """The text, and the levels of a rank as two arrays of 64 bits:
        times in ns, bytes."""
        n = ctypes.c_size_t()
        with self._lock:
            text = self._run()
            first = LIBRARY.memsim_points(self._job, rank, ctypes.byref(n))
            if not first:
                raise errors.UsageError("rank", f"there is no rank {rank}")
            both = array.array("Q")
            both.frombytes(ctypes.string_at(first, 16 * n.value))
        return text, both[0::2], both[1::2]

    def copy(self):
        """A job of its own with the same settings."""
        new = object.__new__(type(self))
        new._lock = threading.Lock()
        with self._lock:
            new._job = LIBRARY.memsim_copy(self._open())
        if not new._job:
            raise errors.NoMemoryError("", "out of memory")
        return new

    def close(self):
        """Gives its memory back; it cannot be used any more."""
        with self._lock:
            job, self._job = self._job, None
            if job:
                LIBRARY.memsim_free(job)

    def _open(self):
        if not self._job:
            raise errors.UsageError("", "the job is closed")
        return self._job

    def _check(self, status):
        if status != 0:
            texts = (LIBRARY.memsim_where, LIBRARY.memsim_what,
                     LIBRARY.memsim_hint)
            raise errors.of_status(status, *(
                get(self._job).decode(errors="replace") for get in texts))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_job", None):
            self.close()


def _members(structure):
    said = {name: getattr(structure, name)
            for name, _ in structure._fields_ if name != "size"}
    said["fits"] = bool(said["fits"])
    return said
