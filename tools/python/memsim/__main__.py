# SPDX-License-Identifier: GPL-3.0-or-later
"""python3 -m memsim ARGUMENT...: the program memsim."""

import os
import sys

from . import errors, program


def main():
    """Becomes the program."""
    try:
        path = program.path()
        os.execv(path, ["memsim", *sys.argv[1:]])
    except (errors.Error, OSError) as error:
        print(f"memsim: {error}", file=sys.stderr)
        sys.exit(4)


if __name__ == "__main__":
    main()
