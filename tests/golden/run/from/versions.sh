# SPDX-License-Identifier: GPL-3.0-or-later
# Files of older versions of a format, and those that mix two.
understand() {
    echo "memsim $*"
    { "$MEMSIM" "$@" >/dev/null; } 2>&1
    echo
}
cd from || exit 2
understand run --gpus 16 --from titan2024.toml
understand run --gpus 16 --from titanmixed.toml
understand run gpt2 --from fsdpmixed.yaml
sed 's/fsdp_version: 2/fsdp_offload_params: false/' fsdpmixed.yaml >one.yaml
understand run gpt2 --from one.yaml
understand run gpt2 --gpus 4 --from ds2021.json
understand run --from pretrain2020.bash
two='"offload_optimizer": {"device": "nvme"}'
sed "s/true,/true, $two,/" ds2021.json >two.json
understand run gpt2 --from two.json
