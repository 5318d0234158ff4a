# SPDX-License-Identifier: GPL-3.0-or-later
# No room for the whole of a file: the old one stays as it was.
echo old >out.csv
echo old >figure.svg
(
    trap '' XFSZ
    # A coverage build's counters have no room either: elsewhere, in silence.
    export GCOV_PREFIX="$PWD/counters" GCOV_ERROR_FILE=/dev/null
    ulimit -f 1
    "$MEMSIM" run tiny.json -q --csv out.csv
    echo $?
    "$MEMSIM" run tiny.json -q --plot=figure.svg
    echo $?
)
cat out.csv figure.svg
find . -name '.memsim*'
