# SPDX-License-Identifier: GPL-3.0-or-later
# Rings: zigzag and plain splits, whose ranks wait for the last; refusals.
# keep: policy, step, traffic, peak, ring, verdict
for ring in mode=ring split=zigzag,impl=rfa split=plain split=plain,rank=0; do
    "$MEMSIM" run llama-3-8b --sequence 65536 -p checkpoint:full \
        --policy "context:4,$ring+zero:3" --gpus 4 |
        grep -A 3 -E '^(step|ring):'
done
"$MEMSIM" run gpt2 -p context:2,split=plain
refuse() {
    echo "memsim run $*"
    "$MEMSIM" run "$@" 2>&1 && echo "it ran"
}
refuse gpt2 -p context:4,mode=a2a,split=plain
refuse gpt2 -p context:4,split=plain,impl=te
refuse gpt2 -p context:4,split=plain,rank=4
refuse gpt2 -p context:4,split=striped
refuse gpt2 -p context:3,split=plain
true
