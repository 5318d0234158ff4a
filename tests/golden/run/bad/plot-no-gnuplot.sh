# SPDX-License-Identifier: GPL-3.0-or-later
mkdir bin
PATH=$PWD/bin "$MEMSIM" run tiny.json --csv out.csv --plot=figure.svg >/dev/null
status=$?
head -n 1 out.csv
ls figure* 2>/dev/null
exit $status
