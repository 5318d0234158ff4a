# SPDX-License-Identifier: GPL-3.0-or-later
# The first line is the version alone; the second tells what it is built from.
"$MEMSIM" --version | sed -E '2s/^commit [0-9a-f]{7,}, //
    2s/[0-9]+\.[0-9]+\.[0-9]+/N/g'
