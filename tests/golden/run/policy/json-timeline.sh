# SPDX-License-Identifier: GPL-3.0-or-later
# What figures are drawn from, as it stands in the text, behind all other keys.
"$MEMSIM" run tiny16.json --policy checkpoint:sqrt --batch 8 --json |
    sed 's/.*, "timeline": /"timeline": /'
