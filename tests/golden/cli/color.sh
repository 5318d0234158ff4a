# SPDX-License-Identifier: GPL-3.0-or-later
"$MEMSIM" run mlp.json --color always | sed -n '/verdict:/p; /next:/p' |
    tr '\033' '^'
NO_COLOR=1 FORCE_COLOR=1 "$MEMSIM" run mlp.json | tr '\033' '^' | grep -c '\^'
FORCE_COLOR=1 "$MEMSIM" run mlp.json | tr '\033' '^' | grep -c '\^'
"$MEMSIM" run mlp.json | tr '\033' '^' | grep -c '\^'
FORCE_COLOR=1 "$MEMSIM" rnu 2>&1 | tr '\033' '^'
FORCE_COLOR=1 "$MEMSIM" run --color never nowhere.json 2>&1 | tr '\033' '^'
