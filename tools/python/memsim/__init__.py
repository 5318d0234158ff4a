# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory and time of training steps, before a GPU hour is spent.

    import memsim

    result = memsim.run("gpt2", batch=8, policy="checkpoint:sqrt")
    print(result)                          # peak, step, does it fit
    result.peak, result.breakdown          # bytes; of what
    result.timeline.bytes                  # an array, numpy takes it as it is
    result.to_html("review.html")          # one page to hand on

    memsim.compare("gpt2", policy=["none", "checkpoint:sqrt"]).rows
    memsim.sweep("gpt2", {"batch": [1, 2, 4]})          # rows for pandas
    memsim.fit("llama-3-8b", gpus=8)["command"]
    memsim.profile(module, inputs).run(batch=32)        # a PyTorch module

    with memsim.expect(peak="70GiB"):                   # in tests
        memsim.run("llama-3-8b", gpus=8, policy="fsdp")

Answers equal the command line's to the byte (result.json is what "memsim run
--json" prints, result.command what to type).  run and jobs are calls into
libmemsim; compare, sweep, fit, figures and pages start the program memsim,
which lies in the wheel.  Failures are exceptions with memsim's own words (see
memsim.errors).

Threads: every function may be called from any, they share nothing; a Job that
threads share lets them take turns.  While a step is simulated other threads
run.  Ctrl-C is seen when the step is done.
"""

from .commands import (ask, compare, expect, fit, load, run, size, sweep)
from .errors import (Error, ExpectationError, InfeasibleError, InputError,
                     NoMemoryError, ProgramError, SystemFault, UsageError)
from .library import VERSION as __version__
from .library import Job
from .profiles import Profile, profile
from .results import Answer, Comparison, Fit, Result, Timeline

__all__ = [
    "Answer", "Comparison", "Error", "ExpectationError", "Fit",
    "InfeasibleError", "InputError", "Job", "NoMemoryError", "Profile",
    "ProgramError", "Result", "SystemFault", "Timeline", "UsageError", "ask",
    "compare", "expect", "fit", "load", "profile", "run", "size", "sweep",
]
