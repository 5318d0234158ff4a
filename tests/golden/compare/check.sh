# SPDX-License-Identifier: GPL-3.0-or-later
# --check: status 1 as soon as one variant does not fit; files and notes.
for memory in 1GiB 640MiB 1MiB; do
    "$MEMSIM" compare tiny.json --batch 8 -p none -p checkpoint:full \
        --memory $memory --check -q --csv out.csv
    echo "$memory: $?"
done
"$MEMSIM" compare tiny.json -p none -p checkpoint:full --json --csv out.csv \
    >out.json
wc -l <out.csv
"$MEMSIM" compare - -p none -p microbatch:1 -q <tiny.json && echo read once
