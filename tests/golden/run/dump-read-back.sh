# SPDX-License-Identifier: GPL-3.0-or-later
# The text form of a program, read back, is the same run.
set -e
"$MEMSIM" run tiny16.json --policy checkpoint:sqrt --dump program >program.txt
"$MEMSIM" run tiny16.json --program program.txt --dump program |
    cmp - program.txt
# From standard input, too, which ends, though the pool takes three steps.
"$MEMSIM" run tiny16.json --program - --dump program <program.txt >again.txt
cmp again.txt program.txt
"$MEMSIM" run tiny16.json --program program.txt --dump plan >plan.txt
"$MEMSIM" run tiny16.json --program - --dump plan <program.txt | cmp - plan.txt
