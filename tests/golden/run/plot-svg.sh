# SPDX-License-Identifier: GPL-3.0-or-later
"$MEMSIM" run tiny16.json --policy checkpoint:sqrt --plot=figure.svg >/dev/null
grep -c '<svg' figure.svg
ls figure*
