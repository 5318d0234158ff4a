# SPDX-License-Identifier: GPL-3.0-or-later
# A trace gives a device's file, with which it is predicted; compressed it says
# the same.
"$MEMSIM" calibrate kineto.json --device h100 -o mine.json
cat mine.json
"$MEMSIM" calibrate kineto.json.gz --device h100 -o - |
    sed s/json.gz/json/ | diff - mine.json
gzip -c -1 kineto.json | "$MEMSIM" calibrate - --check --device mine.json
