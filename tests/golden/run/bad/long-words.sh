# SPDX-License-Identifier: GPL-3.0-or-later
# 1 MB as the name of the model, of a layer, as a key and as an input.
head -c 1000000 /dev/zero | tr '\0' a >word
put() { # before, after
    printf '%s' "$1"
    cat word
    printf '%s' "$2"
}
list='"input": {"shape": [4]}, "layers": [{"type": "relu"'
put '{"name": "' "\", $list}, {\"type\": \"mean\"}]}" >model.json
put "{$list, \"name\": \"" '"}, {"type": "mean"}]}' >layer.json
put "{$list, \"" '": 1}, {"type": "mean"}]}' >key.json
put "{$list, \"inputs\": [\"" '"]}, {"type": "mean"}]}' >input.json
for name in model layer key input; do
    "$MEMSIM" run $name.json 2>&1 | cut -c 1-78
    "$MEMSIM" run $name.json >/dev/null 2>&1
    echo "$name: $?"
done
