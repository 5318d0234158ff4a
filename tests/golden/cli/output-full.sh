# SPDX-License-Identifier: GPL-3.0-or-later
# A full disk is an error on every way out, and leaves nothing behind.
for words in "run tiny.json" "run tiny.json --json" "run tiny.json --csv -" \
    "run tiny.json --dump graph" "run tiny.json --dump program" \
    "run tiny.json --dump plan" "run tiny.json --dump events" \
    "run tiny.json --dump policy" "inspect tiny.json" \
    "inspect tiny.json --json" "inspect tiny.json --dot" \
    "inspect tiny.json --dump model" "help" "help policies" "--version"; do
    # shellcheck disable=SC2086 # words
    "$MEMSIM" $words >/dev/full
    echo "$words: $?"
done
for name in out.csv out.svg out.png out.pdf out.gp; do
    ln -s /dev/full $name
done
"$MEMSIM" run tiny.json -q --csv out.csv
echo "csv: $?"
for ending in svg png pdf; do
    "$MEMSIM" run tiny.json -q --plot=out.$ending
    echo "$ending: $?"
done
rm out.svg
"$MEMSIM" run tiny.json -q --plot=out.svg --keep-script
echo "script: $?"
find . -name '.memsim*'
