# SPDX-License-Identifier: GPL-3.0-or-later
# Files that are cut off, of no format, or that contradict each other.
try() {
    { "$MEMSIM" run "$@" >/dev/null; } 2>&1
    echo "exit status $?"
    echo
}
cd from || exit 2
head -n 9 ds_config.json >cut.json
try gpt2 --from cut.json
head -n 5 titan.toml | cut -c 1-8 >cut.toml
try gpt2 --from cut.toml
printf 'base_model: [a\nsequence_len: 1\n' >cut.yml
try gpt2 --from cut.yml
printf -- '--num-layers 12 --lr "1e-4\n' >cut.sh
try gpt2 --from cut.sh
: >empty.json
try gpt2 --from empty.json
try gpt2 --from absent.json
try gpt2 --from config.json
echo '{"learning": 1}' >other.json
try gpt2 --from other.json
echo '{"output_dir": "x", "gradient_accumulation_steps": 8}' >args.json
sed 's/\("gradient_accumulation_steps": \)"auto"/\14/' ds_config.json >ds.json
try gpt2 --from ds.json --from args.json
sed 's/: null/: "ds_config.json"/' training_args.json >deep.json
try gpt2 --from accelerate.yaml --from deep.json
sed 's/8B/9B/' titan.toml >nine.toml
try --from nine.toml --gpus 8
sed 's/NousResearch.*/someone\/else-7b/' axolotl.yml >else.yml
try --from else.yml
echo '--num-layers 2 --hidden-size 64 --num-experts 8' >experts.txt
try --from experts.txt
try ./config.json --from training_args.json --from ds_config.json --gpus 3
try gpt2 --from
