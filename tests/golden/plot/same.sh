# SPDX-License-Identifier: GPL-3.0-or-later
# A saved result gives the figure that the run itself gives, byte for byte; the
# default name is that of run --plot.
"$MEMSIM" run tiny16.json -p checkpoint:sqrt -q --plot=run.svg
"$MEMSIM" run tiny16.json -p checkpoint:sqrt --json | "$MEMSIM" plot -
cmp run.svg memsim.svg
"$MEMSIM" plot swept.csv -q -o a.svg
"$MEMSIM" plot swept.csv -q -o b.svg
cmp a.svg b.svg
