# SPDX-License-Identifier: GPL-3.0-or-later
# Standard input ends: only one of what is read can come from it.
try() {
    "$MEMSIM" run "$@" <tiny.json 2>&1
    echo "status $?"
}
try - --program -
try - --page -
try tiny.json --program - --page -
