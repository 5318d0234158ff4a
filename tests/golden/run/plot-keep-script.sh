# SPDX-License-Identifier: GPL-3.0-or-later
"$MEMSIM" run tiny.json -q --plot=figure.svg --keep-script
ls figure.*
