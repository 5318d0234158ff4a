# SPDX-License-Identifier: GPL-3.0-or-later
# A pipe is read once, whatever the grid makes of the model.
"$MEMSIM" sweep - --grid model.layers=1..3 --grid batch=1,2 <tiny.json |
    tee one
# shellcheck disable=SC2002 # a pipe, not the file
cat tiny.json | "$MEMSIM" sweep /dev/stdin --grid model.layers=1..3 \
    --grid batch=1,2 | cmp - one
