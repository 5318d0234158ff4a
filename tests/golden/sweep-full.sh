# SPDX-License-Identifier: GPL-3.0-or-later
# A disk that fills up: whole rows stay, and can be gone on with.
"$MEMSIM" sweep tiny.json --grid batch=1..200 -o whole.csv -q
(
    trap '' XFSZ
    ulimit -f 8
    "$MEMSIM" sweep tiny.json --grid batch=1..200 -o rows.csv
    echo "status $?"
)
[ -z "$(tail -c 1 rows.csv)" ] && echo "whole rows"
[ "$(wc -l <rows.csv)" -gt 1 ] && [ "$(wc -l <rows.csv)" -lt 201 ] && echo some
"$MEMSIM" sweep tiny.json --grid batch=1..200 -o rows.csv --resume -q &&
    cmp rows.csv whole.csv
