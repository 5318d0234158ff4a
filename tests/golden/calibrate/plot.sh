# SPDX-License-Identifier: GPL-3.0-or-later
# Recorded over predicted: the script of the figure.
"$MEMSIM" calibrate kineto.json --device h100 --check -q --plot step.svg \
    --keep-script
grep -c . step.gp
grep -E '^(set label|plot)' step.gp | head -n 40
"$MEMSIM" calibrate shapes.csv --device h100 --check -q --plot step.svg
echo "$?"
