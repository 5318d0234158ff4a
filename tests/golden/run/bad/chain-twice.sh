# SPDX-License-Identifier: GPL-3.0-or-later
sed 's/"s4"/"s2"/' chain.json >twice.json
"$MEMSIM" run twice.json
