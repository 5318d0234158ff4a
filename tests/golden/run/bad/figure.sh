# SPDX-License-Identifier: GPL-3.0-or-later
# An unknown kind, a kind without a figure, outputs that cannot be written.
try() {
    { "$MEMSIM" run tiny.json "$@" >/dev/null; } 2>&1
    echo "$?"
}
try --plot=a.svg --figure gant
try --plot=a.svg --figure pie
try --plot=a.svg --figure
try --figure gantt
try --figure gantt --keep-script
try --plot=a.gif --figure gantt
mkdir folder.svg
try --plot=folder.svg --figure gantt
try --trace folder.svg
try --trace nowhere/trace.json
try --trace /dev/full
try --trace tiny.json
try --trace same --csv same
try --trace - --json
try --trace - --plot=-
find . ! -name '*.json' ! -name 'swept.*' ! -name . | LC_ALL=C sort
