# SPDX-License-Identifier: GPL-3.0-or-later
# Several numbers of GPUs give a table with a row each, or an object per line.
"$MEMSIM" fit gpt3-small --set model.layers=2 --gpus 1,4 --batch 4 \
    --memory 5GiB -p checkpoint:full -j2
"$MEMSIM" fit gpt3-small --set model.layers=2 --gpus 1,4 --batch 4 \
    --memory 5GiB -p checkpoint:full -j2 --json |
    sed 's/.*"gpus": \([0-9]*\).*"recommendation": {\([^}]*\).*/\1 \2/'
