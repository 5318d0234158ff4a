# SPDX-License-Identifier: GPL-3.0-or-later
# A config belongs to a family that has one.
echo '{"input": {"shape": [4]}, "layers": [{"type": "mean"}],
 "config": {}}' >layers.json
echo '{"family": "parameters", "count": 4,
 "config": {}}' >count.json
"$MEMSIM" run layers.json 2>&1
"$MEMSIM" run count.json 2>&1
