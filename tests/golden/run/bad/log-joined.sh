# SPDX-License-Identifier: GPL-3.0-or-later
# Two instructions in a line: names are counted by lines.
tr -d '\n' <run.log >joined.log
"$MEMSIM" run joined.log
