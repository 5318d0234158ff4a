# SPDX-License-Identifier: GPL-3.0-or-later
# The report alone: policy-json.args has the timeline, too.
"$MEMSIM" run tiny16.json --policy swap:save_on_cpu+checkpoint:full --batch 8 \
    --json | sed 's/, "timeline".*//'
