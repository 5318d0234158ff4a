# SPDX-License-Identifier: GPL-3.0-or-later
# A config.json of Hugging Face, the folder that holds it, standard input: one
# model, under every command.  inspect --dump model writes it as layers.
mkdir hf-llama
cp hf-llama.json hf-llama/config.json
"$MEMSIM" inspect hf-llama
"$MEMSIM" run hf-llama/config.json | keep 'model, step, peak, at peak'
"$MEMSIM" inspect hf-llama --dump model | tee native.json
number='"parameters": [0-9]*'
for model in hf-llama hf-llama/ hf-llama/config.json native.json; do
    "$MEMSIM" inspect "$model" --json | grep -o "$number" | head -n 1
    "$MEMSIM" run "$model" --json | grep -o '"allocated_bytes": [0-9]*' |
        head -n 1
done
"$MEMSIM" inspect - --json <hf-llama/config.json | grep -o "$number" | head -n 1
(cd hf-llama && "$MEMSIM" inspect . | head -n 1)
