# SPDX-License-Identifier: GPL-3.0-or-later
# A variant that is refused says why on the page; the others are there.
"$MEMSIM" report gpt2 --batch 3 -p microbatch:2 -p none -o - |
    sed -n 's/.*"refused":\("[^"]*"\|null\).*/\1/p'
