# SPDX-License-Identifier: GPL-3.0-or-later
# A file that memsim opens must not become standard output, which is closed.
"$MEMSIM" run mlp.json --json --csv out.csv >&-
echo $?
ls out.csv
