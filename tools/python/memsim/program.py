# SPDX-License-Identifier: GPL-3.0-or-later
"""The program memsim, which the wheel brings along: what prints, searches or
draws goes through it, with the arguments that a person would type.
"""

import functools
import os
import shutil
import subprocess

from . import errors
from .library import VERSION, bundled, word

REPEATED = {"allocator", "allocators", "filter", "grid", "label", "page",
            "plugin", "policy", "variant"}


def path():
    """MEMSIM_PROGRAM, the one that came along, or that of PATH."""
    found = (os.environ.get("MEMSIM_PROGRAM")
             or bundled("memsim", "../../../../bin/memsim")
             or shutil.which("memsim"))
    if not found:
        raise errors.SystemFault(
            "", "there is no program memsim", "install memsim's wheel or "
            "package, or set MEMSIM_PROGRAM to its path")
    check(found)
    return found


@functools.lru_cache(maxsize=None)
def check(program):
    """The library and the program must be of one version."""
    said = start(program, ["--version"]).stdout.decode(errors="replace")
    if said.split()[:2] != ["memsim", VERSION]:
        raise errors.SystemFault(
            program, f"is {' '.join(said.split()[:2])}, the library is "
            f"{VERSION}", "use both of one build")


@functools.lru_cache(maxsize=None)
def options(program, command):
    """The names of the options that a command takes."""
    asked = start(program, ["completion", "words", "--", command, "--"])
    lines = asked.stdout.decode().splitlines()
    return frozenset(line.split("\t")[0][2:] for line in lines)


def arguments(command, models, set=None, **settings):
    """What a person would type behind "memsim".  An option is its name; every
    other key is one of --set.  A list repeats an option, or is a list of the
    command line; True is an option without a value."""
    typed = [command, *(os.fspath(model) for model in models)]
    known = options(path(), command)
    for key, value in {**settings, **(set or {})}.items():
        name = key.replace("_", "-")
        if value in (None, [], ()) or (value is False and name in known):
            continue
        if "." in key or name not in known:
            typed += ["--set", f"{key}={word(value)}"]
        elif value is True:
            typed.append(f"--{name}")
        else:
            several = isinstance(value, (list, tuple)) and name in REPEATED
            for item in value if several else [value]:
                typed += [f"--{name}", word(item)]
    return typed


def start(program, typed, given=None):
    """Runs it to its end."""
    try:
        return subprocess.run([program, *typed], input=given, check=False,
                              stdin=subprocess.DEVNULL if given is None
                              else None, capture_output=True)
    except OSError as error:
        raise errors.SystemFault(program, f"cannot start: {error.strerror}"
                                 ) from error
    except ValueError as error: # a zero byte
        raise errors.UsageError("", str(error)) from error


def run(typed, given=None):
    """What it prints, as bytes; a status of failure is an exception whose
    text is that of the program."""
    done = start(path(), typed, given)
    if done.returncode in (0, 1) or (done.returncode == 6 and done.stdout):
        return done.stdout # 1: --check, it does not fit; 6: data tell why
    said = done.stderr.decode(errors="replace").rstrip("\n")
    lines = said.split("\n")
    begin = max((i for i, line in enumerate(lines)
                 if line.startswith("memsim: ")), default=0)
    what = lines[begin][len("memsim: "):] if said else (
        f"memsim ended with status {done.returncode}")
    hint = "\n".join(line[2:] for line in lines[begin + 1:])
    raise errors.of_status(done.returncode, "", what, hint)
