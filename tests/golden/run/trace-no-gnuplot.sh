# SPDX-License-Identifier: GPL-3.0-or-later
# The data outputs are written all the same.
mkdir bin
PATH=$PWD/bin "$MEMSIM" run tiny.json -q --csv out.csv --trace trace.json \
    --figure gantt --plot=figure.svg
status=$?
tail -n 1 trace.json
ls out.csv trace.json figure* 2>/dev/null
exit $status
