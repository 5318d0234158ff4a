# SPDX-License-Identifier: GPL-3.0-or-later
# The next word is the figure only if it ends like one.
"$MEMSIM" run --plot figure.svg tiny.json >/dev/null
"$MEMSIM" run --plot tiny.json >/dev/null
ls ./*.svg
