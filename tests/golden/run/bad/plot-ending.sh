# SPDX-License-Identifier: GPL-3.0-or-later
"$MEMSIM" run tiny.json --plot=figure.gif
status=$?
find . -name 'figure*'
exit $status
