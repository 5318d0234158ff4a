# SPDX-License-Identifier: GPL-3.0-or-later
# Words that are no UTF-8, in every place of the command line.
bytes=$(printf 'a\377\033[31m\302')
for option in --policy --device --set --memory --csv --program --plot --dump \
    --batch "--$bytes"; do
    "$MEMSIM" run tiny.json -q "$option=$bytes/x"
    echo "$?"
done
"$MEMSIM" "$bytes"
"$MEMSIM" help "$bytes"
"$MEMSIM" run tiny.json --set "model.$bytes=1"
"$MEMSIM" run tiny.json --set "training.$bytes=1"
"$MEMSIM" run tiny.json --policy "checkpoint:$bytes=1"
"$MEMSIM" run tiny.json --policy "checkpoint:blocks=$bytes"
