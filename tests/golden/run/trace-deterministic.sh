# SPDX-License-Identifier: GPL-3.0-or-later
# Same input, same bytes out, whatever the locale; into a pipe, too.
set -e
for locale in C C.UTF-8 de_DE.UTF-8; do
    LC_ALL=$locale "$MEMSIM" run tiny16.json -q -p zero:3,dp=8 \
        --trace "$locale.json" --figure gantt --plot="$locale.svg"
    cmp C.json "$locale.json"
    cmp C.svg "$locale.svg"
done
"$MEMSIM" run tiny16.json -p zero:3,dp=8 --trace - | cmp - C.json
