# SPDX-License-Identifier: GPL-3.0-or-later
# The report alone: policy-json.args has the timeline, too.
"$MEMSIM" run tiny16.json --policy zero:2+microbatch:2 --gpus 4 --batch 8 \
    --json | sed 's/, "timeline".*//'
