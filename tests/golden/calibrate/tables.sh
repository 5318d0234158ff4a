# SPDX-License-Identifier: GPL-3.0-or-later
# A CSV of shapes with times, one of bytes with rates, a table of SimuMax.
for file in shapes.csv rates.csv; do
    "$MEMSIM" calibrate "$file" --device h100 -o mine.json
    cat mine.json
done
"$MEMSIM" run gpt2 --batch 8 --device mine.json --json |
    grep -o '"step_ns": [0-9]*' | head -n 1
"$MEMSIM" calibrate simumax.json --device a100 -o mine.json
cat mine.json
