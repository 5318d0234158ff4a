/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "graphs/settings/settingwords.h"
#include "graphs/field.h"

#include <stdio.h>
#include <string.h>

/* ---- keys ---------------------------------------------------------------- */

static const ms_word keys[] = {
    MS_WORD_MEANS(
        "training",
        "batch_size|bs|per_device_train_batch_size|per_device_batch_size|"
        "local_batch_size|samples",
        "batch"),
    MS_WORD_MEANS(
        "training",
        "seq|seq_len|seq_length|sequence_length|max_length|max_seq_len|max_"
        "seq_length|context_length|block_size|n_ctx",
        "sequence"),
    MS_WORD_MEANS("training", "dtype|torch_dtype|mixed_precision", "precision"),
    MS_WORD_MEANS("training", "optim|optimiser", "optimizer"),
    MS_WORD_MEANS("training",
                  "attn_implementation|attention_implementation|attention",
                  "attention_kernel"),
    MS_WORD_MEANS(
        "training",
        "max_grad_norm|grad_clip|gradient_clipping|clip_grad|clip_grad_norm",
        "clip_norm"),
    MS_WORD_MEANS("training", "kernel", "kernels"),
    MS_WORD_MEANS("training",
                  "mlp|tiled_mlp|tiled_mlp_num_shards|mlp_shards|num_shards",
                  "mlp_tiles"),
    MS_WORD_MEANS("training", "loss", "loss_kernel"),
    MS_WORD_INSTEAD("training",
                    "cuda_graph|cuda_graphs|cudagraph|cudagraphs|use_cuda_"
                    "graph|cuda_graph_impl|enable_cuda_graph",
                    "--set training.launch=graph", "graph-step: the step, too"),
    MS_WORD_MEANS("training", "torch|pytorch|torch_version", "framework"),
    MS_WORD_MEANS("training", "lora_r|lora_rank", "lora.rank"),
    MS_WORD_MEANS("training", "lora_target_modules|lora_targets",
                  "lora.targets"),
    MS_WORD_MEANS("training", "lora_dropout", "lora.dropout"),
    MS_WORD_MEANS("lora", "r", "lora.rank"),
    MS_WORD_MEANS("lora", "target_modules|modules", "lora.targets"),
    MS_WORD_INSTEAD(
        "training",
        "micro_batch|micro_batches|micro_batch_size|num_micro_batches|"
        "gradient_accumulation_steps|grad_accum|grad_accum_steps|gradient_"
        "accumulation|accumulate_grad_batches",
        "--batch 8 -p microbatch:4",
        "training.batch is what a step sees, which micro-batches divide: "
        "here 4 of 2 samples"),
    MS_WORD_INSTEAD(
        "training", "global_batch|global_batch_size|train_batch_size|gbs",
        "--global-batch 8 --gpus 8 -p ddp",
        "the job's batch is an option, training.batch is one rank's"),
    MS_WORD_INSTEAD(
        "training",
        "gradient_checkpointing|activation_checkpointing|checkpointing|"
        "checkpoint|recompute|recomputation|recompute_granularity",
        "-p checkpoint:full",
        "each block is recomputed; sqrt, selective and others: memsim help "
        "checkpoint"),
    MS_WORD_INSTEAD(
        "training", "bf16", "--precision bf16-mixed",
        "16-bit weights with fp32 masters; autocast-bf16: torch.autocast"),
    MS_WORD_INSTEAD(
        "training", "fp16|amp", "--precision autocast-fp16",
        "torch.autocast; fp16-mixed: 16-bit weights with fp32 masters"),
    MS_WORD_INSTEAD("training", "zero_stage|zero|stage|deepspeed",
                    "-p zero:3 --gpus 8",
                    "sharding is a policy (memsim help zero)"),
    MS_WORD_INSTEAD("training", "fsdp", "-p fsdp --gpus 8",
                    "sharding is a policy (memsim help fsdp)"),
    MS_WORD_INSTEAD(
        "training", "gpus|n_gpus|num_gpus|world_size|dp|data_parallel",
        "--gpus 8 -p ddp", "ranks are an option, what they share a policy"),
    MS_WORD_INSTEAD("training", "memory|gpu_memory|vram", "--memory 80GiB",
                    "the capacity is an option"),
    MS_WORD_INSTEAD("training", "policy", "-p checkpoint:sqrt",
                    "policies are an option (memsim help policies)"),
    MS_WORD_INSTEAD("training", "lora|peft|use_adapters", "--set lora.rank=16",
                    "adapters of that rank beside frozen weights"),
    MS_WORD_INSTEAD("training", "qlora|load_in_4bit",
                    "--set lora.rank=16 --set lora.base=nf4",
                    "frozen weights in 4 bits; without adapters: frozen.base"),
    MS_WORD_INSTEAD("training", "load_in_8bit",
                    "--set lora.rank=16 --set lora.base=int8",
                    "frozen weights in 8 bits; without adapters: frozen.base"),
    MS_WORD_INSTEAD("training", "fused_optimizer|fused",
                    "--set training.optimizer_impl=fused",
                    "one kernel for all parameters"),
    MS_WORD_ANSWER(
        "training",
        "learning_rate|lr|epochs|num_epochs|warmup_steps|seed|beta1|beta2|"
        "momentum|lora_alpha",
        "it changes neither memory nor time of a step: leave it out"),
    MS_WORD_ANSWER(
        "lora", "alpha|lora_alpha",
        "it changes neither memory nor time of a step: leave it out"),
    MS_WORD_ANSWER(
        "training",
        "tensor_parallel*|tp|pipeline_parallel*|pp|pipeline|context_"
        "parallel*|cp|sequence_parallel|expert_parallel*|ep",
        "it is a policy: -p tensor:4,sp+context:2+expert:4+pipeline:2, one or "
        "several of them"),
};
const ms_words ms_settingwords_keys = {.title = "Keys of --set and --grid",
                                       .rows = keys,
                                       .n = sizeof keys / sizeof *keys};

/* ---- values -------------------------------------------------------------- */

static const ms_word values[] = {
    MS_WORD_MEANS("precision", "bfloat16|bf16_true|pure_bf16|torch.bfloat16",
                  "bf16"),
    MS_WORD_MEANS("precision", "float16|half|fp16_true|torch.float16", "fp16"),
    MS_WORD_MEANS("precision",
                  "float32|float|single|32|32true|full|torch.float32", "fp32"),
    MS_WORD_MEANS("precision", "tensor_float32", "tf32"),
    MS_WORD_MEANS("precision", "mixed_bf16|mixed_bfloat16|bfloat16_mixed",
                  "bf16-mixed"),
    MS_WORD_MEANS("precision", "mixed_fp16|mixed_float16|float16_mixed|16mixed",
                  "fp16-mixed"),
    MS_WORD_MEANS("precision",
                  "bf16_autocast|bf16_amp|amp_bf16|autocast_bfloat16",
                  "autocast-bf16"),
    MS_WORD_MEANS("precision",
                  "fp16_autocast|fp16_amp|amp_fp16|autocast_float16",
                  "autocast-fp16"),
    MS_WORD_INSTEAD(
        "precision", "amp|autocast|mixed|16", "--precision autocast-bf16",
        "torch.autocast, or autocast-fp16; bf16-mixed: 16-bit weights with "
        "fp32 masters"),
    MS_WORD_INSTEAD("precision", "o1", "--precision autocast-fp16",
                    "torch.autocast, which apex's O1 became"),
    MS_WORD_INSTEAD("precision", "o2", "--precision fp16-mixed",
                    "16-bit weights with fp32 masters, as apex's O2"),
    MS_WORD_INSTEAD("precision", "nf4|int4|4bit|qlora",
                    "--set lora.rank=16 --set lora.base=nf4",
                    "frozen weights are held in 4 bits beside adapters"),
    MS_WORD_INSTEAD("precision", "int8|8bit",
                    "--set lora.rank=16 --set lora.base=int8",
                    "frozen weights are held in 8 bits beside adapters"),
    MS_WORD_INSTEAD("precision", "fp64|float64|double", "--precision fp32",
                    "nothing is computed in 64 bits"),

    MS_WORD_MEANS("optimizer",
                  "adamw_torch|adamw_hf|torch.optim.adamw|torch_adamw",
                  "adamw"),
    MS_WORD_MEANS("optimizer", "torch.optim.adam|torch_adam", "adam"),
    MS_WORD_MEANS("optimizer",
                  "adamw_bnb_8bit|adamw_8bit_bnb|bnb_adamw_8bit|bnb.adamw8bit",
                  "adamw-8bit"),
    MS_WORD_MEANS("optimizer", "adam_bnb_8bit|bnb_adam_8bit|bnb.adam8bit",
                  "adam-8bit"),
    MS_WORD_MEANS("optimizer", "lion_bnb_8bit", "lion-8bit"),
    MS_WORD_MEANS("optimizer", "lion_32bit", "lion"),
    MS_WORD_MEANS("optimizer", "sgd_momentum|momentum_sgd", "momentum"),
    MS_WORD_INSTEAD("optimizer", "amsgrad", "--optimizer adamw-amsgrad",
                    "or adam-amsgrad"),
    MS_WORD_MEANS("optimizer", "galore_adamw", "galore"),
    MS_WORD_MEANS("optimizer", "no", "none"),
    MS_WORD_INSTEAD(
        "optimizer",
        "adamw_torch_fused|adamw_fused|fused_adamw|adamw_apex_fused",
        "--optimizer adamw --set training.optimizer_impl=fused",
        "the kernel has a setting of its own"),
    MS_WORD_INSTEAD("optimizer", "fused_adam|adam_fused",
                    "--optimizer adam --set training.optimizer_impl=fused",
                    "the kernel has a setting of its own"),
    MS_WORD_INSTEAD("optimizer", "paged_adamw_8bit",
                    "--optimizer adamw-8bit -p "
                    "uvm:optimizer",
                    "bitsandbytes' pages are unified memory"),
    MS_WORD_INSTEAD("optimizer", "paged_adamw|paged_adamw_32bit",
                    "--optimizer adamw -p "
                    "uvm:optimizer",
                    "bitsandbytes' pages are unified memory"),
    MS_WORD_INSTEAD("optimizer", "paged_lion_8bit",
                    "--optimizer lion-8bit -p "
                    "uvm:optimizer",
                    "bitsandbytes' pages are unified memory"),
    MS_WORD_INSTEAD("optimizer", "cpu_adam|deepspeed_cpu_adam|cpu_adamw",
                    "--optimizer adamw -p offload:optimizer",
                    "where the step runs is a policy"),

    MS_WORD_MEANS(
        "kernels",
        "flash_attention|flash_attention_2|flash_attn|flash_attn_2|flash_2|fa2|"
        "flash_attention_3|fa3",
        "flash"),
    MS_WORD_MEANS("kernels", "xformers|memory_efficient|mem_efficient",
                  "efficient"),
    MS_WORD_MEANS("kernels", "scaled_dot_product_attention|torch_sdpa", "sdpa"),
    MS_WORD_MEANS("kernels", "liger|liger_kernel", "fused"),
    MS_WORD_MEANS("kernels",
                  "te|transformer_engine|mcore|megatron_core|megatron_lm",
                  "megatron"),
    MS_WORD_MEANS("kernels", "math|naive|vanilla|plain", "eager"),
    MS_WORD_INSTEAD(
        "kernels", "compile|torch_compile|inductor", "--kernels fused",
        "one kernel each for norms, gates, rotation and loss is near; --set "
        "launch=compiled has torch.compile's launches"),
    MS_WORD_MEANS("launch", "cuda_graph|cuda_graphs|cudagraph|reduce_overhead",
                  "graph"),
    MS_WORD_MEANS("launch", "inductor|torch_compile|compile", "compiled"),
    MS_WORD_MEANS(
        "attention_kernel",
        "flash_attention|flash_attention_2|flash_attn|flash_attn_2|flash_2|fa2",
        "flash"),
    MS_WORD_MEANS("attention_kernel",
                  "flash_attention_3|flash_attn_3|flash_3|fa3|cudnn", "flash3"),
    MS_WORD_MEANS("attention_kernel", "xformers|memory_efficient|mem_efficient",
                  "efficient"),
    MS_WORD_MEANS("attention_kernel", "math|naive", "eager"),
    MS_WORD_MEANS("loss_kernel",
                  "chunked|chunked_ce|chunked_cross_entropy|chunked_loss",
                  "ce_with_chunked_output"),
    MS_WORD_MEANS(
        "loss_kernel",
        "liger_fused_linear|fused_linear_cross_entropy|fused_linear|flce|cut_"
        "cross_entropy",
        "liger_linear"),
    MS_WORD_MEANS("loss_kernel",
                  "tiled_loss|tiled_logits_loss|tiled_fused_logits_loss|alst",
                  "tiled"),

    MS_WORD_MEANS(
        "framework",
        "torch2.0.*|pytorch2.0|pytorch2.0.*|2.0|2.0.*|torch2.1|torch2.1.*|"
        "pytorch2.1|pytorch2.1.*|2.1|2.1.*|torch2.2|torch2.2.*|pytorch2.2|"
        "pytorch2.2.*|2.2|2.2.*|torch2.3|torch2.3.*|pytorch2.3|pytorch2.3.*|"
        "2.3|2.3.*",
        "torch-2.0"),
    MS_WORD_MEANS("framework",
                  "torch2.*|pytorch2|pytorch2.*|2|2.*|torch|pytorch",
                  "torch-2"),
    MS_WORD_MEANS("framework",
                  "torch1.13.*|pytorch1.13|pytorch1.13.*|1.13|1.13.*",
                  "torch-1.13"),
    MS_WORD_INSTEAD("framework", "torch1*|pytorch1*|1.*",
                    "--framework torch-1.13",
                    "the oldest whose rules are known"),
    MS_WORD_ANSWER(
        "framework",
        "jax|flax|tensorflow|tf|keras|mxnet|paddle|megatron|deepspeed|"
        "transformers|lightning|accelerate",
        "the rules are PyTorch's: torch-1.13, torch-2.0 or torch-2; other "
        "code is in --kernels and policies"),
    MS_WORD_INSTEAD("device", "h100|gpu|cuda:0", "--device h100",
                    "training.device says only cuda or cpu"),
    MS_WORD_INSTEAD("device", "a100", "--device a100",
                    "training.device says only cuda or cpu"),
    MS_WORD_INSTEAD("device", "4090|rtx4090", "--device 4090",
                    "training.device says only cuda or cpu"),

    MS_WORD_MEANS("mode", "training", "train"),
    MS_WORD_MEANS("mode", "eval|evaluation|infer|predict|generate|forward",
                  "inference"),
    MS_WORD_MEANS("zero_grad", "set_to_none", "none"),
    MS_WORD_MEANS("targets", "all_linear|linear|everything", "all"),
    MS_WORD_MEANS("targets", "attn", "attention"),
    MS_WORD_MEANS("targets", "ffn", "mlp"),
    MS_WORD_MEANS("base", "4bit|qlora", "nf4"),
    MS_WORD_MEANS("base", "8bit|llm.int8", "int8"),
    MS_WORD_MEANS("base", "awq|gptq", "int4"),
    MS_WORD_MEANS("no|yes", "true|on|1", "yes"),
    MS_WORD_MEANS("no|yes", "false|off|0", "no"),
    MS_WORD_MEANS("yes|no", "true|on|1", "yes"),
    MS_WORD_MEANS("yes|no", "false|off|0", "no"),
    MS_WORD_MEANS("auto|no|yes", "true|on|1", "yes"),
    MS_WORD_MEANS("auto|no|yes", "false|off|0", "no"),
};
const ms_words ms_settingwords_values = {.title = "Values of settings",
                                         .rows = values,
                                         .n = sizeof values / sizeof *values};

/* ---- looking up ---------------------------------------------------------- */

const ms_word *ms_settingwords_key(const char *group, const char *key)
{
    return ms_words_find(&ms_settingwords_keys, group, key, strlen(key));
}

/* Copies word number index of "a|b|c" into room. */
static const char *copy_word(const char *words, int index, char *room,
                             size_t size)
{
    for (; index > 0; index--)
        words = strchr(words, '|') + 1;
    snprintf(room, size, "%.*s", (int)strcspn(words, "|"), words);
    return room;
}

const char *ms_settingwords_value(const ms_field *field, const char *value,
                                  const ms_word **answered, char *room,
                                  size_t size)
{
    const ms_words *table = &ms_settingwords_values;
    size_t length = strlen(value);
    *answered = NULL;
    if (field->type != MS_WORD)
        return value;
    int index = ms_words_index(field->words, value, length);
    if (index >= 0)
        return copy_word(field->words, index, room, size);
    const ms_word *row = ms_words_find(table, field->name, value, length);
    if (row == NULL)
        row = ms_words_find(table, field->words, value, length);
    if (row == NULL || row->means != NULL)
        return row != NULL ? row->means : value;
    *answered = row;
    return NULL;
}
