# SPDX-License-Identifier: GPL-3.0-or-later
"$MEMSIM" run tiny.json --csv - 2>&1 | head -n 1
