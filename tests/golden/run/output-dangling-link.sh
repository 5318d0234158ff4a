# SPDX-License-Identifier: GPL-3.0-or-later
ln -s nowhere out.csv
"$MEMSIM" run tiny.json -q --csv out.csv
status=$?
ls nowhere
exit $status
