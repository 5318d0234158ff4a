# SPDX-License-Identifier: GPL-3.0-or-later
# A disk fills up: whole rows stay, and the sweep can be resumed.
"$MEMSIM" sweep tiny.json --grid batch=1..200 -o whole.csv -q
(
    trap '' XFSZ
    # A coverage build's counters have no room either: elsewhere, in silence.
    export GCOV_PREFIX="$PWD/counters" GCOV_ERROR_FILE=/dev/null
    ulimit -f 8
    "$MEMSIM" sweep tiny.json --grid batch=1..200 -o part.csv
    echo "status $?"
)
[ -z "$(tail -c 1 part.csv)" ] && echo "whole rows"
[ "$(wc -l <part.csv)" -gt 1 ] && [ "$(wc -l <part.csv)" -lt 201 ] && echo some
"$MEMSIM" sweep tiny.json --grid batch=1..200 -o part.csv --resume -q &&
    cmp part.csv whole.csv
