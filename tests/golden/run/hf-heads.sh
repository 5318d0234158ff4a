# SPDX-License-Identifier: GPL-3.0-or-later
# Classes of transformers by their name in "architectures": parameters, saved
# bytes, and the ops of the loss over start and end of an answer.
try() {
    printf '{"model_type": "%s", %s,\n"vocab_size": 100,\n' "$1" "$2" \
        >config.json
    printf '"architectures": ["%s"]}\n' "$3" >>config.json
    printf '%s: ' "$3"
    "$MEMSIM" inspect config.json --sequence 16 --batch 2 2>&1 |
        sed -n '1s/^[^,]*, \([0-9,]* parameters\).*/\1/p; /^memsim/p' |
        tr '\n' ' '
    "$MEMSIM" run config.json --sequence 16 --batch 2 --json 2>/dev/null |
        grep -o '"saved_for_backward_bytes": [0-9]*' || echo
}
bert='"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64,
    "num_hidden_layers": 2, "max_position_embeddings": 40, "num_labels": 3'
for class in Model ForMaskedLM ForPreTraining ForNextSentencePrediction \
    ForSequenceClassification ForMultipleChoice ForTokenClassification \
    ForQuestionAnswering; do
    try bert "$bert" Bert$class
done
for class in ForSequenceClassification ForMultipleChoice \
    ForTokenClassification ForQuestionAnswering; do
    try roberta "$bert" Roberta$class
done
t5='"d_model": 32, "d_kv": 16, "d_ff": 64, "num_heads": 2, "num_layers": 2,
    "num_labels": 3, "classifier_dropout": 0.1'
for class in Model EncoderModel WithLMHeadModel ForConditionalGeneration \
    ForSequenceClassification ForTokenClassification ForQuestionAnswering; do
    try t5 "$t5" T5$class
done
for class in ForTokenClassification ForQuestionAnswering; do
    try llama "$bert" Llama$class
    try qwen3 "$bert, \"num_key_value_heads\": 1" Qwen3$class
done
try llama "$bert" LlamaForImageClassification
"$MEMSIM" run config.json --set model.head=answers --sequence 16 --batch 2 \
    --kernels eager --dump graph | grep 'loss' | grep -v '^storage'
"$MEMSIM" run config.json --set model.head=tokens 2>&1
