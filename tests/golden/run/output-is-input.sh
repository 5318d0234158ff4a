# SPDX-License-Identifier: GPL-3.0-or-later
# An output never overwrites an input, by whatever name.
cp tiny.json before.json
ln -s tiny.json link.csv
ln tiny.json twin.svg
"$MEMSIM" run tiny.json --csv tiny.json
"$MEMSIM" run tiny.json --csv ./link.csv
"$MEMSIM" run ./tiny.json --plot=twin.svg
cmp before.json tiny.json
