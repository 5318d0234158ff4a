# SPDX-License-Identifier: GPL-3.0-or-later
mkdir out.csv
"$MEMSIM" run tiny.json --csv out.csv >text
status=$?
keep verdict <text
ls out.csv
exit $status
