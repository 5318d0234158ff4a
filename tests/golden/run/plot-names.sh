# SPDX-License-Identifier: GPL-3.0-or-later
# A hostile name reaches neither a shell nor a gnuplot command.
"$MEMSIM" run names.json --plot=figure.svg --csv out.csv >/dev/null
find . -name 'figure*' -o -name 'out*' -o -name 'pwned*' | sort
