# SPDX-License-Identifier: GPL-3.0-or-later
# These words name no instant, and these no number of groups.
for at in 12.5 3.x 5parsecs 9s -3ms backwrd aten::addm gelu_backwrd nonsense \
    ''; do
    "$MEMSIM" explain tiny.json --at "$at" 2>&1
done
for top in -1 x 1.5 9999999999; do
    "$MEMSIM" explain tiny.json --top "$top" 2>&1
done
"$MEMSIM" explain tiny.json --mode=inference --at backward 2>&1
"$MEMSIM" explain tiny.json --set mode=inference --at backward 2>&1
"$MEMSIM" explain
