# SPDX-License-Identifier: GPL-3.0-or-later
# A config belongs to a family that has one, or holds numbers of a layer list.
echo '{"input": {"shape": [4]}, "layers": [{"type": "mean"}],
 "config": {"two words": 3}}' >layers.json
echo '{"input": {"shape": [4]}, "layers": [{"type": "mean"}],
 "config": {"width": "3"}}' >text.json
echo '{"family": "parameters", "count": 4,
 "config": {}}' >count.json
"$MEMSIM" run layers.json 2>&1
"$MEMSIM" run text.json 2>&1
"$MEMSIM" run layers.json --set model.width=3 2>&1
"$MEMSIM" run count.json 2>&1
