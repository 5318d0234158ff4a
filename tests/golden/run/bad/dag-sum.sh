# SPDX-License-Identifier: GPL-3.0-or-later
sed 's/"bytes": [0-9]*/"bytes": 1125899906842624/' dag.json >large.json
"$MEMSIM" run large.json
