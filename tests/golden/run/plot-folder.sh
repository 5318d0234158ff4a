# SPDX-License-Identifier: GPL-3.0-or-later
mkdir figure.svg
"$MEMSIM" run tiny.json -q --plot=figure.svg
status=$?
ls -a figure.svg
exit $status
