# SPDX-License-Identifier: GPL-3.0-or-later
# A recording beside a model, a saved result beside a recording, two policies
# of one model: the same step is the same, however it comes.
"$MEMSIM" run tiny.json --batch 4 -q --snapshot step.pickle
"$MEMSIM" run gpt2 --batch 4 --json >saved.json
"$MEMSIM" run ./tiny.json --batch 4 --json >path.json
last() {
    "$MEMSIM" diff "$@" | sed -n '/^note/,$p; /^the same/,$p'
}
last step.pickle tiny.json --batch 4
last tiny.json step.pickle --batch 4 -p none
last saved.json saved.json
last saved.json gpt2 --batch 4
last path.json step.pickle
"$MEMSIM" diff gpt2 --batch 4 -p none -p checkpoint:full --top 2
"$MEMSIM" diff stacks.pickle tiny.json --batch 4 | sed -n '1,4p; /^peak/p'
"$MEMSIM" diff path.json tiny.json --batch 4 --json |
    jq -c '.without, .differences, .same_count, .difference_bytes'
