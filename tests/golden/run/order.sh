# SPDX-License-Identifier: GPL-3.0-or-later
# Who lies next to whom decides which links a group uses; bad orders.
# keep: policy, step, traffic
for order in tp-pp-dp dp-tp-pp pp-tp-dp; do
    "$MEMSIM" run llama-3-8b -p "tensor:4,sp,order=$order" \
        -p pipeline:2+microbatch:4+zero:1 --batch 4 --gpus 16 >out
    grep -E '^policy' out
    grep -A 8 -E '^(step|traffic):' out | grep -E 'step|s, waiting|between'
    "$MEMSIM" run llama-3-8b -p "tensor:4,sp,order=$order" \
        -p pipeline:2+microbatch:4+zero:1 --gpus 16 --batch 4 --dump graph |
        grep -E '^group [0-9]+ = (data|pipeline|tensor) ' | cut -d' ' -f1-12
done
"$MEMSIM" run llama-3-8b -p tensor:2,sp,order=cp-tp-dp+context:2+zero:1 \
    --gpus 16 --dump graph | grep -E '^group [0-9]+ = (data|context|tensor) ' |
    cut -d' ' -f1-12
refuse() {
    echo "memsim run $*"
    "$MEMSIM" run "$@" 2>&1 && echo "it ran"
}
refuse gpt2 -p tensor:2,order=tp-dp-tp+zero:1 --gpus 4
refuse gpt2 -p tensor:2,order=dp+zero:1 --gpus 4
refuse gpt2 -p tensor:2,order=tp-data+zero:1 --gpus 4
refuse gpt2 -p tensor:2,order=tp-dp+context:2,order=cp-tp-dp --gpus 4
refuse gpt2 --use-tp-pp-dp-mapping
true
