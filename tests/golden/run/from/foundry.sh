# SPDX-License-Identifier: GPL-3.0-or-later
# llm-foundry's YAML: references, Composer's FSDP and its micro-batches, files
# of before 0.1, models of Hugging Face, and what is refused.
understand() {
    echo "memsim $*"
    { "$MEMSIM" "$@" >/dev/null; } 2>&1
    echo "exit status $?"
    echo
}
cd from || exit 2
understand run --from foundry.yaml --gpus 8
understand run --from foundry.yaml --gpus 1024
understand inspect --from foundry.yaml
understand run --from foundryold.yaml --gpus 8
understand run --from foundryhf.yaml --gpus 8
understand run --from foundryhf.yaml --gpus 1 --batch 3
understand run --from foundry.yaml --gpus 8 --batch 18 -p fsdp
understand run --from foundry.yaml --gpus 6
understand run --from foundry.yaml
edit() { sed "$1" foundry.yaml >edited.yaml; }
edit 's/microbatch_size: 8/microbatch_size: 0.5/'
understand run --from edited.yaml --gpus 8
edit 's/expansion_ratio: 4/expansion_ratio: wide/'
understand run --from edited.yaml --gpus 8
edit 's/attn_config:/ffn_config: {ffn_type: mb_dmoe}\n  attn_config:/'
understand run --from edited.yaml --gpus 8
# shellcheck disable=SC2016 # references of OmegaConf
edit 's/: 4096/: ${variables.width}/; s/: 32$/: ${n_layers}/'
understand run --from edited.yaml --gpus 8
sed 's/meta.*hf/someone\/else-7b/' foundryhf.yaml >else.yaml
understand run --from else.yaml
