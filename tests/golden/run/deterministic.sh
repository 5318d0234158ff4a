# SPDX-License-Identifier: GPL-3.0-or-later
# Same input, same bytes out, whatever the locale.
set -e
for locale in C C.UTF-8 de_DE.UTF-8; do
    LC_ALL=$locale "$MEMSIM" run tiny16.json -p checkpoint:sqrt --json \
        --csv "$locale.csv" >"$locale.json" 2>"$locale.err"
    cmp C.json "$locale.json"
    cmp C.csv "$locale.csv"
done
