# SPDX-License-Identifier: GPL-3.0-or-later
# Groups and expressions that contradict themselves: each is one element of a
# layer list.
while read -r element; do
    printf '{"memsim": 1, "name": "bad", "input": {"shape": [8]},
 "config": {"width": 12}, "layers": [
 %s,
 {"type": "mean"}], "templates": {"up": [{"type": "linear", "out": "width"}],
 "self": [{"template": "self"}]}}\n' "$element" >bad.json
    echo "$element"
    "$MEMSIM" run ./bad.json 2>&1
done <<'END'
{"type": "linear", "out": "4 * widht"}
{"type": "linear", "out": "width / 5"}
{"type": "linear", "out": "width - 12"}
{"type": "linear", "out": "(width"}
{"type": "linear", "out": "width 2"}
{"type": "linear", "out": "width / (width - 12)"}
{"type": "linear", "out": "round(width)"}
{"type": "linear", "out": "min(width)"}
{"type": "linear", "out": 4, "when": "deep"}
{"type": "linear", "out": 4, "name": "a{width"}
{"type": "linear", "out": 4, "name": "a{width / 5}"}
{"repeat": "width / 5", "layers": [{"type": "relu"}]}
{"repeat": 2, "each": {"a": [1]}, "layers": [{"type": "relu"}]}
{"repeat": 2, "index": "2i", "layers": [{"type": "relu"}]}
{"repeat": 2, "name": "a{width}", "layers": [{"type": "relu"}]}
{"each": {"a": [1, 2], "b": [1]}, "layers": [{"type": "relu"}]}
{"each": {"a": []}, "layers": [{"type": "relu"}]}
{"each": [1], "layers": [{"type": "relu"}]}
{"each": {"a": ["b"]}, "layers": [{"type": "relu"}]}
{"template": "down"}
{"template": "upp"}
{"template": "self"}
{"template": "up", "layers": [{"type": "relu"}]}
{"template": "up", "with": 3}
{"template": "up", "with": {"wi dth": 3}}
{"template": "up", "inputs": ["input", "input"]}
{"template": "up", "inputs": ["later"]}
{"name": "g", "width": 3, "layers": [{"type": "relu"}]}
{"type": "cat", "inputs": ["input", "blocks.*"]}
END
