# SPDX-License-Identifier: GPL-3.0-or-later
"$MEMSIM" run tiny.json --csv - 2>&1 | head -n 1
"$MEMSIM" sweep tiny.json --grid batch=1..300 2>&1 | head -n 1
"$MEMSIM" alloc alloc.txt --csv - 2>&1 | head -n 1
"$MEMSIM" compare tiny.json -p none -p checkpoint:full --plot=- 2>&1 | head -c 5
echo
"$MEMSIM" compare tiny.json -p none -p checkpoint:full --plot=- --csv - 2>&1
