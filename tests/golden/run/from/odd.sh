# SPDX-License-Identifier: GPL-3.0-or-later
# Files as people have them: old keys, plugins, branches of a shell, launchers,
# values of nobody's.  What is not understood is told, with its line.
understand() {
    echo "memsim $*"
    { "$MEMSIM" "$@" >/dev/null; } 2>&1
    echo
}
cd from/odd || exit 2
understand run --from axolotl-long.yml --gpus 8
understand run --from axolotl-qlora.yml
understand run --from factory-galore.yaml
understand run --from factory.bash
understand run --from titan2024.toml --gpus 8
understand run --from titan2026.toml --gpus 64
understand run --from megatron-if.bash
understand run --from megatron-bert.bash
understand run --from megatron-deepspeed.bash
understand run ../config.json --from accelerate-deepspeed.yaml
understand run ../config.json --from accelerate-nd.yaml
understand run ../config.json --from training_args2022.json --gpus 8
printf '\357\273\277' | cat - training_args2022.json >marked.json
understand run ../config.json --from marked.json --gpus 8 |
    sed -n '/understood/p'
sed 's/$/\r/' megatron-if.bash >windows.bash
understand run --from windows.bash | sed -n '/understood/p'
