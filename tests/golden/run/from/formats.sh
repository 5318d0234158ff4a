# SPDX-License-Identifier: GPL-3.0-or-later
# Settings of each format: what is understood, told and warned of.
understand() {
    echo "memsim $*"
    { "$MEMSIM" "$@" >/dev/null; } 2>&1
    echo
}
cd from || exit 2
understand run ./config.json --from ds_config.json --from training_args.json
understand run ./config.json --gpus 4 --from ds_config.json
understand run ./config.json --from accelerate.yaml --from training_args.json
understand run --gpus 8 --from titan.toml
understand run --from pretrain.bash
understand run --from axolotl.yml
understand run --from factory.yaml
understand run ./config.json --from ds_config.json --from training_args.json \
    --batch 16 -p checkpoint:sqrt --precision fp16-mixed --gpus 2 --quiet
understand explain ./config.json --from ds_config.json --from \
    training_args.json --gpus 8 --set clip_norm=0.5
understand compare ./config.json --from accelerate.yaml -p none \
    -p checkpoint:full
understand inspect ./config.json --from accelerate.yaml
understand fit ./config.json --from accelerate.yaml --batch 1 -p checkpoint:full
understand report ./config.json --from accelerate.yaml -o page.html
understand sweep ./config.json --from accelerate.yaml --grid batch=1,2
