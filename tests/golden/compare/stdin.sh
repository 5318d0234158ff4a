# SPDX-License-Identifier: GPL-3.0-or-later
# Standard input may be a result or a model.
"$MEMSIM" run tiny.json --json | "$MEMSIM" compare - tiny.json -p none -p ddp \
    --gpus 2 | sed -n '3,6p'
"$MEMSIM" compare - -p none -p checkpoint:full <tiny.json | sed -n '5,8p'
echo '{"hello": 1}' | "$MEMSIM" compare - tiny.json
echo "$?"
