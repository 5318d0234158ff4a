# SPDX-License-Identifier: GPL-3.0-or-later
# Exchanges beside products (tp_comm_overlap; torch's async tensor parallel):
# buffers, time, refusals.
# keep: policy, step, device
for how in tensor:8,sp tensor:8,sp,overlap; do
    "$MEMSIM" run llama-3-70b --kernels megatron --set model.layers=8 \
        --sequence 8192 --policy "$how" --gpus 8 |
        grep -A 4 -E '^(policy|step|device):'
done
for how in tensor:8,sp tensor:8,sp,overlap; do
    "$MEMSIM" run llama-3-70b --kernels fused --set model.layers=8 \
        --set training.launch=compiled --sequence 8192 --batch 2 \
        --policy "$how" --gpus 8 | grep -A 4 -E '^(policy|step|device):'
done
"$MEMSIM" run llama-3-8b --kernels megatron -p tensor:8,sp,overlap --json |
    tr ',' '\n' | grep -o '"userbuffers_bytes": [0-9]*'
refuse() {
    echo "memsim run $*"
    "$MEMSIM" run "$@" 2>&1 && echo "it ran"
}
refuse llama-3-8b --kernels megatron -p tensor:8,overlap
refuse llama-3-8b --precision autocast-bf16 -p tensor:8,sp,overlap
refuse llama-3-8b --set lora.rank=8 -p tensor:8,sp,overlap
refuse llama-3-8b --set training.device=cpu -p tensor:8,sp,overlap
refuse llama-3-8b --kernels megatron --precision fp8 -p tensor:8,sp,overlap
refuse llama-3-8b --kernels megatron --set megatron.spec=local \
    -p tensor:8,sp,overlap
refuse gpt3 --kernels megatron -p tensor:16,sp,overlap --gpus 16
refuse gpt2 --tp-comm-overlap
refuse gpt2 --enable-async-tensor-parallel
refuse gpt2 -p async_tp
true
