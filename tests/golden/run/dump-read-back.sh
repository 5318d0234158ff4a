# SPDX-License-Identifier: GPL-3.0-or-later
# The text form of a program, read back, is the same run.
set -e
"$MEMSIM" run tiny16.json --policy checkpoint:sqrt --dump program >program.txt
"$MEMSIM" run tiny16.json --program program.txt --dump program |
    cmp - program.txt
