# SPDX-License-Identifier: GPL-3.0-or-later
# Forward runs again unit by unit, its weights are gathered before each.
"$MEMSIM" run gpt2 --set model.layers=4 --gpus 4 \
    -p zero:3+checkpoint:revolve=1 --dump program | grep -v "^set" |
    sed -n '/mark after_forward/,/run backward unit 12/p' | head -n 24
