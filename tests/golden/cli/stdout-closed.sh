# SPDX-License-Identifier: GPL-3.0-or-later
# Nothing that is opened may take the place of standard output.
"$MEMSIM" run mlp.json --json --csv out.csv >&-
echo $?
ls out.csv
