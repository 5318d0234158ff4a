# SPDX-License-Identifier: GPL-3.0-or-later
"""What can go wrong, in memsim's own words.

    try:
        memsim.run("gpt2", policy="checkpiont")
    except memsim.UsageError as error:
        error.what    # 'unknown policy "checkpiont"'
        error.hint    # 'did you mean "checkpoint"? policies: ...'
        error.status  # 2, the exit status of the program

str(error) is what the program prints.
"""


class Error(Exception):
    """A failure of memsim: where it lies, what is wrong, what to try."""

    status = 4

    def __init__(self, where="", what="", hint="", status=None):
        self.where, self.what, self.hint = where, what, hint
        if status is not None:
            self.status = status
        text = f"{where}: {what}" if where else what
        super().__init__(text + "".join(
            f"\n  {line}" for line in hint.splitlines()))

    def __reduce__(self):
        return type(self), (self.where, self.what, self.hint, self.status)


class UsageError(Error, ValueError):
    """An option, policy, device or setting that there is not (2)."""

    status = 2


class InputError(Error, ValueError):
    """A model or a file that cannot be read as one (3)."""

    status = 3


class SystemFault(Error):
    """A file that cannot be read or written (4)."""

    status = 4


class ProgramError(Error):
    """gnuplot is missing or failed; everything else works (5)."""

    status = 5


class InfeasibleError(Error):
    """Policies that cannot keep to their budget, or no plan (6)."""

    status = 6


class NoMemoryError(Error, MemoryError):
    """memsim itself has no memory left (7)."""

    status = 7


class ExpectationError(AssertionError):
    """What memsim.expect() found too large."""


KINDS = {kind.status: kind for kind in (
    UsageError, InputError, SystemFault, ProgramError, InfeasibleError,
    NoMemoryError)}


def of_status(status, where="", what="", hint=""):
    """The exception of an exit status."""
    return KINDS.get(status, Error)(where, what, hint, status)
