# SPDX-License-Identifier: GPL-3.0-or-later
# Words that are no UTF-8, in every place of the command line.
bytes=$(printf 'a\377\033[31m\302')
try() {
    "$MEMSIM" "$@" 2>err
    echo "$?"
    head -n 1 err
}
for option in --policy --device --set --memory --csv --trace --program --plot \
    --figure --dump --batch "--$bytes"; do
    try run tiny.json -q "$option=$bytes/x"
done
try "$bytes"
try help "$bytes"
try run tiny.json --set "model.$bytes=1"
try run tiny.json --set "training.$bytes=1"
try run tiny.json --policy "checkpoint:$bytes=1"
try run tiny.json --policy "checkpoint:blocks=$bytes"
