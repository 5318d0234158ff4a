# SPDX-License-Identifier: GPL-3.0-or-later
# Inputs that would exhaust the machine are refused by a counted budget:
# templates and repeats that double, files of a folder that never end.
rest='{"type": "linear", "name": "head", "out": 4}, {"type": "cross_entropy"}]'
try() {
    timeout 10 "$MEMSIM" inspect "$1" 2>&1 | sed -n 1p
}
doubling() { # the innermost layer
    printf '{"input": {"shape": [8]}, "layers": [{"template": "t0"}, %s,
        "templates": {' "$rest"
    for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23; do
        printf '"t%d": [{"template": "t%d"}, {"template": "t%d"}],\n' \
            $i $((i + 1)) $((i + 1))
    done
    printf '"t24": [%s]}}' "$1"
}
doubling '{"type": "relu"}' >doubling.json
doubling '{"type": "relu", "when": "0"}' >nothing.json
nest='{"type": "relu", "when": "0"}'
for i in 1 2 3 4; do
    nest="{\"repeat\": 100000, \"block\": false, \"layers\": [$nest]}"
done
echo "{\"input\": {\"shape\": [8]}, \"layers\": [$nest, $rest}" >nest.json
nest='{"repeat": 1000000, "layers": [{"type": "linear", "out": 16}]}'
echo "{\"input\": {\"shape\": [8]}, \"layers\": [$nest, $rest}" >million.json
nest='{"repeat": "n", "layers": [{"type": "linear", "out": 16}]}'
echo "{\"config\": {\"n\": 1000000}, \"input\": {\"shape\": [8]},
       \"layers\": [$nest, $rest}" >config.json
for file in doubling nothing nest million config; do
    try $file.json
done
mkdir pipe loop folder weights index
mkfifo pipe/config.json weights/model.safetensors \
    index/model.safetensors.index.json
ln -s config.json loop/config.json
mkdir folder/config.json
cp hf-llama.json weights/config.json
cp hf-llama.json index/config.json
for folder in pipe loop folder weights index; do
    try ./$folder
done
