/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/policywords.h"

#include <string.h>

#define POLICY "policy"
#define PARAM "parameter"

static const ms_word rows[] = {
    MS_WORD_MEANS(POLICY, "off|baseline|nothing|default|plain", "none"),
    MS_WORD_MEANS(POLICY, "zero_stage|stage|deepspeed_stage", "zero"),
    MS_WORD_MEANS(POLICY, "zero0|zero_stage_0|stage0", "zero:0"),
    MS_WORD_MEANS(POLICY, "zero1|zero_stage_1|stage1", "zero:1"),
    MS_WORD_MEANS(POLICY, "zero2|zero_stage_2|stage2", "zero:2"),
    MS_WORD_MEANS(POLICY, "zero3|zero_stage_3|stage3", "zero:3"),
    MS_WORD_MEANS(POLICY, "deepspeed1|deepspeed_stage_1|deepspeed_zero1",
                  "zero:1,impl=deepspeed"),
    MS_WORD_MEANS(POLICY, "deepspeed2|deepspeed_stage_2|deepspeed_zero2",
                  "zero:2,impl=deepspeed"),
    MS_WORD_MEANS(POLICY, "deepspeed3|deepspeed_stage_3|deepspeed_zero3",
                  "zero:3,impl=deepspeed"),
    MS_WORD_MEANS(POLICY,
                  "distributed_optimizer|megatron_distributed_optimizer",
                  "zero:1,impl=megatron"),
    MS_WORD_MEANS(POLICY, "fsdp2|fully_shard", "fsdp"),
    MS_WORD_MEANS(POLICY, "megatron_fsdp|custom_fsdp", "fsdp:code=megatron"),
    MS_WORD_MEANS(POLICY, "fsdp1|fully_sharded_data_parallel|full_shard",
                  "fsdp:impl=1"),
    MS_WORD_MEANS(POLICY, "shard_grad_op",
                  "fsdp:impl=1,strategy=shard_grad_op"),
    MS_WORD_MEANS(POLICY, "distributed_data_parallel", "ddp"),
    MS_WORD_MEANS(
        POLICY,
        "gradient_checkpointing|gradient_checkpoint|grad_checkpointing|"
        "activation_checkpointing|activation_checkpoint|checkpointing|"
        "recompute|recomputation|remat|rematerialization|activation_"
        "recomputation|torch.utils.checkpoint",
        "checkpoint:?full"),
    MS_WORD_MEANS(
        POLICY,
        "selective|selective_checkpointing|selective_recompute|recompute_"
        "activations",
        "checkpoint:selective"),
    MS_WORD_MEANS(POLICY, "sac|selective_activation_checkpointing",
                  "checkpoint:sac"),
    MS_WORD_MEANS(POLICY, "sqrt", "checkpoint:sqrt"),
    MS_WORD_MEANS(POLICY, "chen|chen_greedy|ap_greedy", "checkpoint:chen"),
    MS_WORD_INSTEAD(POLICY,
                    "recompute_modules|recompute_granularity|recompute_method",
                    "-p checkpoint:modules=core_attn/mlp",
                    "full granularity: uniform is every=N, block is first=N"),
    MS_WORD_INSTEAD(POLICY, "selective_ac_option|selective_ac|layer_sac",
                    "-p checkpoint:each=2", "or checkpoint:sac, by op"),
    MS_WORD_INSTEAD(POLICY,
                    "checkpoint_policy|must_save|prefer_save|must_recompute|"
                    "create_selective_checkpoint_contexts",
                    "-p checkpoint:save=aten.mm",
                    "by op; recompute= names what is recomputed"),
    MS_WORD_INSTEAD(POLICY, "checkpoint_sequential",
                    "-p checkpoint:sequential=4", "so many segments"),
    MS_WORD_INSTEAD(POLICY,
                    "rotor|checkmate|pebbling|optimal|"
                    "optimal_checkpointing",
                    "-p checkpoint:optimal,budget=40GiB",
                    "the best plan is one for a budget"),
    MS_WORD_MEANS(POLICY, "mincut|min_cut|min_cut_rematerialization_partition",
                  "checkpoint:mincut"),
    MS_WORD_INSTEAD(POLICY, "activation_memory_budget|knapsack",
                    "-p checkpoint:knapsack,share=50",
                    "in percent of what mincut saves"),
    MS_WORD_INSTEAD(POLICY, "revolve|treeverse|binomial",
                    "-p checkpoint:revolve=8", "with so many checkpoints"),
    MS_WORD_MEANS(POLICY, "micro_batch|micro_batches|micro_batching",
                  "microbatch"),
    MS_WORD_MEANS(POLICY,
                  "pp|pp_size|pp_degree|pipeline_parallel|pipeline_parallel_"
                  "size|pipeline_model_parallel_size",
                  "pipeline"),
    MS_WORD_MEANS(POLICY,
                  "offload_optimizer|optimizer_offload|offload_adam|cpu_adam",
                  "offload:optimizer"),
    MS_WORD_MEANS(POLICY, "cpu_offload_optimizer|torchao",
                  "offload:optimizer,impl=torchao"),
    MS_WORD_MEANS(POLICY, "hybrid_device_optimizer|optimizer_cpu_offload",
                  "offload:optimizer,impl=megatron"),
    MS_WORD_MEANS(POLICY,
                  "offload_param|offload_params|param_offload|params_offload",
                  "offload:params"),
    MS_WORD_MEANS(POLICY, "save_on_cpu", "swap:save_on_cpu"),
    MS_WORD_MEANS(POLICY, "capuchin", "swap:capuchin"),
    MS_WORD_MEANS(POLICY, "superneurons", "swap:superneurons"),
    MS_WORD_MEANS(POLICY, "unified_memory|managed_memory|cuda_managed", "uvm"),
    MS_WORD_MEANS(POLICY,
                  "paged_optimizer|paged_optimizers|paged_adam|paged_adamw",
                  "uvm:optimizer"),

    MS_WORD_INSTEAD(POLICY, "zero_dp|zero_redundancy",
                    "-p zero:3,dp=8,impl=deepspeed",
                    "which stage of ZeRO? (memsim help zero)"),
    MS_WORD_INSTEAD(POLICY, "zero_offload",
                    "-p zero:2,dp=8+offload:optimizer/gradients",
                    "two policies (memsim help offload)"),
    MS_WORD_INSTEAD(POLICY, "zero_infinity",
                    "-p zero:3,dp=8+offload:optimizer/params,to=nvme",
                    "two policies (memsim help offload)"),
    MS_WORD_INSTEAD(
        POLICY, "zenflow|zen_flow|zero_offload_zenflow",
        "--batch 4 -p microbatch:4+deepspeed:2,dp=8+offload:optimizer/"
        "gradients,topk_ratio=0.1,overlap_step=1",
        "a way to offload (memsim help offload)"),
    MS_WORD_INSTEAD(POLICY,
                    "sharded_optimizer|optimizer_state_sharding|optimizer_"
                    "sharding|zero_redundancy_optimizer|sharding",
                    "-p zero:1 --gpus 8",
                    "memsim help shard has what shares more"),
    MS_WORD_ANSWER(POLICY, "oom|out_of_memory|cuda_out_of_memory",
                   "memsim help oom says what helps"),
    MS_WORD_INSTEAD(POLICY, "batch|batch_size|per_device_train_batch_size",
                    "--batch 8", "the batch is a setting"),
    MS_WORD_INSTEAD(POLICY,
                    "sequence|sequence_length|seq_len|context_length|max_"
                    "seq_len",
                    "--sequence 1024", "the sequence is a setting"),
    MS_WORD_INSTEAD(POLICY, "model_parallel|model_parallelism|mp|megatron",
                    "-p tensor:4,sp+pipeline:2 --gpus 8",
                    "tensor splits each layer, pipeline shares the layers"),
    MS_WORD_INSTEAD(POLICY, "hybrid_shard|hsdp", "-p fsdp:dp=8,shard=4",
                    "groups of 4 divide the states and hold copies"),
    MS_WORD_INSTEAD(
        POLICY, "dp|data_parallel|ddp2|gpus|num_gpus|world_size|ranks",
        "-p ddp:dp=8", "ranks that sum gradients; zero and fsdp share more"),
    MS_WORD_INSTEAD(POLICY, "vdnn", "-p swap:vdnn=all",
                    "one of all, conv, dyn (help swap)"),
    MS_WORD_INSTEAD(POLICY, "te", "-p swap:te=4",
                    "so many blocks leave (help swap)"),
    MS_WORD_INSTEAD(
        POLICY, "cpu_offload|offload_cpu", "-p offload:optimizer",
        "or params, gradients, joined with /; of activations: swap"),
    MS_WORD_INSTEAD(
        POLICY,
        "activation_offload|activation_offloading|offload_activations|"
        "offload_activation|cpu_activations",
        "-p swap:save_on_cpu", "or torchtune, trl, te=N (memsim help swap)"),
    MS_WORD_INSTEAD(
        POLICY,
        "gradient_accumulation|gradient_accumulation_steps|grad_accum|grad_"
        "accum_steps|accumulation|micro_batch_size",
        "--batch 8 -p microbatch:4",
        "the batch is what a step sees, which micro-batches divide: here 4 "
        "of 2 samples"),
    MS_WORD_INSTEAD(
        POLICY, "lora|peft", "--set lora.rank=16",
        "adapters are a setting of the model (memsim help training)"),
    MS_WORD_INSTEAD(POLICY, "qlora", "--set lora.rank=16 --set lora.base=nf4",
                    "adapters and 4-bit weights are settings of the model"),
    MS_WORD_INSTEAD(POLICY, "nf4|4bit|quantization|quantize",
                    "--set lora.base=nf4 --set "
                    "lora.rank=16",
                    "frozen weights are held in 4 bits beside adapters"),
    MS_WORD_INSTEAD(POLICY, "freeze|frozen", "--set frozen.blocks=2",
                    "the first blocks are frozen (memsim help training)"),
    MS_WORD_INSTEAD(POLICY, "amp|autocast|mixed_precision|mixed|bf16|bfloat16",
                    "--precision autocast-bf16", "precision is a setting"),
    MS_WORD_INSTEAD(POLICY, "fp16|float16|half", "--precision fp16-mixed",
                    "precision is a setting"),
    MS_WORD_INSTEAD(POLICY, "fp8", "--precision fp8", "precision is a setting"),
    MS_WORD_INSTEAD(POLICY,
                    "8bit|8bit_adam|adam_8bit|8bit_optimizer|adamw_8bit",
                    "--optimizer adamw-8bit", "the optimizer is a setting"),
    MS_WORD_INSTEAD(POLICY, "fused_optimizer|fused_adam|fused_adamw",
                    "--set training.optimizer_impl=fused", "a setting"),
    MS_WORD_INSTEAD(POLICY,
                    "optimizer_in_backward|fused_backward|overlapped_optimizer",
                    "--set training.optimizer_in_backward=yes", "a setting"),
    MS_WORD_INSTEAD(POLICY,
                    "flash|flash_attention|flash_attention_2|flash_attn",
                    "--kernels flash", "kernels are a setting"),
    MS_WORD_INSTEAD(POLICY, "liger|fused_kernels|fused", "--kernels fused",
                    "kernels are a setting"),
    MS_WORD_INSTEAD(POLICY, "chunked_loss|chunked_cross_entropy|chunked_ce",
                    "--set training.loss_kernel=ce_with_chunked_output",
                    "a setting"),
    MS_WORD_INSTEAD(POLICY, "expandable_segments|expandable",
                    "--allocator torch,expandable_segments:True",
                    "an option of the pool"),
    MS_WORD_MEANS(POLICY, "tensor_parallel|tensor_parallelism|tp", "tensor"),
    MS_WORD_MEANS(POLICY, "context_parallel|context_parallelism|cp", "context"),
    MS_WORD_INSTEAD(POLICY, "overlap_grad_reduce",
                    "-p zero:1,dp=8,impl=megatron,overlap_grad_reduce=1",
                    "Megatron's gradients are reduced beside backward"),
    MS_WORD_INSTEAD(POLICY, "tp_plan|colwise|rowwise", "-p tensor:4,plan=hf",
                    "Hugging Face's plan of ranks that split layers"),
    MS_WORD_INSTEAD(POLICY, "sequence_parallel*|sp", "-p tensor:4,sp",
                    "ranks that split layers divide the sequence between"),
    MS_WORD_INSTEAD(POLICY, "async_tp|async_tensor_parallel|symm_mem",
                    "-p tensor:4,sp,overlap",
                    "exchanges beside products, in symmetric memory"),
    MS_WORD_INSTEAD(POLICY, "ring_attention", "-p context:4,mode=ring",
                    "keys and values go round"),
    MS_WORD_INSTEAD(POLICY, "ulysses", "-p context:4,mode=a2a",
                    "all-to-all before and after attention"),
    MS_WORD_INSTEAD(POLICY, "3d", "-p tensor:4,sp+pipeline:2+zero:1 --gpus 16",
                    "policies join with +"),
    MS_WORD_MEANS(POLICY, "expert_parallel|expert_parallelism|ep", "expert"),
    MS_WORD_MEANS(POLICY, "dynamic_tensor_rematerialization|simrd|h_dtr",
                  "dtr"),
    MS_WORD_MEANS(POLICY, "h_dtr_eq|dtr_eq", "dtr:h=eq"),
    MS_WORD_MEANS(POLICY, "lru", "dtr:h=lru"),
    MS_WORD_INSTEAD(POLICY, "compile|torch_compile|torch.compile|inductor",
                    "--set launch=compiled",
                    "launches of compiled code; --kernels fused has one kernel "
                    "each for norms, gates, rotation and loss"),
    MS_WORD_INSTEAD(POLICY, "cuda_graph|cuda_graphs|cudagraphs",
                    "--set launch=graph",
                    "forward and backward are recorded; graph-step: the "
                    "update, too"),

    MS_WORD_MEANS(
        PARAM,
        "gpus|n_gpus|num_gpus|world_size|ranks|degree|dp_size|dp_degree|"
        "data_parallel_size",
        "dp"),
    MS_WORD_MEANS(PARAM, "zero_stage", "stage"),
    MS_WORD_MEANS(PARAM, "vpp|virtual_stages|virtual_pipeline_stages|v",
                  "chunks"),
    MS_WORD_MEANS(PARAM,
                  "microbatch_group_size_per_vp_stage|microbatch_group_size_"
                  "per_virtual_pipeline_stage|group_size",
                  "group"),
    MS_WORD_MEANS(PARAM, "deallocate_pipeline_outputs", "deallocate"),
    MS_WORD_MEANS(PARAM,
                  "post_validation|postvalidation|enable_optimizer_post_"
                  "validation",
                  "optimizer"),
    MS_WORD_MEANS(PARAM, "overlap_p2p_communication|overlap_p2p_comm",
                  "overlap"),
    MS_WORD_MEANS(PARAM,
                  "scatter_gather_tensors_in_pipeline|pipe_partitioned|"
                  "grad_partitioned|partitioned",
                  "messages"),
    MS_WORD_MEANS(PARAM,
                  "overlap_moe_expert_parallel_comm|combined_1f1b|overlap_f_b",
                  "pairs"),
    MS_WORD_MEANS(PARAM, "batch_p2p_comm|batch_p2p|batch_isend_irecv",
                  "queues"),
    MS_WORD_MEANS(PARAM,
                  "pipeline_parallel_schedule|pipeline_parallel_schedule_csv|"
                  "schedule_csv",
                  "schedule"),
    MS_WORD_MEANS(PARAM, "layout|pipeline_model_parallel_layout", "layers"),
    MS_WORD_MEANS(PARAM, "layers_per_stage|pipeline_parallel_layers_per_stage",
                  "per_stage"),
    MS_WORD_MEANS(
        PARAM,
        "decoder_first_pipeline_num_layers|num_layers_in_first_pipeline_stage",
        "first"),
    MS_WORD_MEANS(
        PARAM,
        "decoder_last_pipeline_num_layers|num_layers_in_last_pipeline_stage",
        "last"),
    MS_WORD_MEANS(PARAM, "uniform|recompute_num_layers", "every"),
    MS_WORD_MEANS(PARAM, "ac_freq|selective_ac_option|every_nth", "each"),
    MS_WORD_MEANS(PARAM, "recompute_modules|modules_to_recompute", "modules"),
    MS_WORD_MEANS(PARAM, "save_list|must_save|save_ops", "save"),
    MS_WORD_MEANS(PARAM, "must_recompute|recompute_ops", "recompute"),
    MS_WORD_MEANS(PARAM, "device", "to"),
    MS_WORD_MEANS(PARAM, "pin_memory|pinned", "pin"),
    MS_WORD_MEANS(PARAM, "omp_num_threads|num_threads|cores", "threads"),
    MS_WORD_MEANS(PARAM, "overlap_cpu_optimizer_d2h_h2d", "overlap"),
    MS_WORD_MEANS(PARAM, "tp_comm_overlap", "overlap"),
    MS_WORD_MEANS(PARAM, "tp_recompute_allgather", "regather"),
    MS_WORD_MEANS(PARAM, "topk|top_k|topk_share", "topk_ratio"),
    MS_WORD_INSTEAD(PARAM, "update_interval", "--batch 4 -p microbatch:4",
                    "ZenFlow's host updates once a step, its iterations are "
                    "micro-batches"),
};
const ms_words ms_policywords_table = {
    .title = "Policies", .rows = rows, .n = sizeof rows / sizeof *rows};

const char *ms_policywords_param(const char *word, size_t length)
{
    const ms_word *row =
        ms_words_find(&ms_policywords_table, PARAM, word, length);
    return row != NULL ? row->means : NULL;
}

bool ms_policywords_lists(const char *words, const char *name)
{
    size_t length = strlen(name);
    for (; *words != '\0'; words += *words == '|') {
        size_t other = strcspn(words, "|");
        if (other == length && memcmp(name, words, length) == 0)
            return true;
        words += other;
    }
    return false;
}

/* ---- in words of the registry -------------------------------------------- */

/* A policy as the user typed it: [at, at + name), then what follows its sign.
 */
typedef struct typed {
    const char *at, *rest;
    size_t name, length, n_rest;
} typed;

static typed split(const char *at, size_t length)
{
    typed t = {.at = at, .length = length};
    while (t.name < length && strchr(":=,", at[t.name]) == NULL)
        t.name++;
    t.rest = at + t.name;
    if (t.name < length) {
        t.rest++;
        t.n_rest = length - t.name - 1;
    }
    return t;
}

/* Does the parser understand the policy as it is typed? */
static bool is_plain(const typed *t, const char *own)
{
    return strlen(own) == t->name && memcmp(own, t->at, t->name) == 0 &&
           (t->name == t->length || t->at[t->name] == ':');
}

/* Returns our word for the beginning of the policy, or NULL. */
static const char *beginning(const typed *t, const ms_word **row)
{
    *row = NULL;
    for (uint32_t i = 0; i < ms_registry_n(); i++) {
        const char *own = ms_registry_row(i)->name;
        if (ms_words_same(own, strlen(own), t->at, t->name))
            return own;
    }
    *row = ms_words_find(&ms_policywords_table, POLICY, t->at, t->name);
    return *row != NULL ? (*row)->means : NULL;
}

/* Writes what the row means, and what the user adds to it. */
static void join(const char *means, const typed *t, ms_text *text)
{
    const char *unless = strchr(means, '?');
    size_t length = strlen(means);
    if (unless != NULL)
        length = (size_t)(unless - means);
    ms_text_put(text, means, length);
    if (t->n_rest == 0 && unless != NULL)
        ms_text_add(text, "%s", unless + 1);
    if (t->n_rest == 0)
        return;
    if (unless == NULL)
        ms_text_add(text, strchr(means, ':') == NULL ? ":" : ",");
    ms_text_put(text, t->rest, t->n_rest);
}

/* Writes one policy in our words; *changed is set where it was in others. */
static ms_err put_policy(const typed *t, ms_text *text, bool *changed,
                         const char *spec, ms_fault *fault)
{
    const ms_word *row;
    char hint[384];
    const char *own = beginning(t, &row);
    if (own == NULL && row != NULL) {
        ms_words_hint(row, hint, sizeof hint);
        ms_fail_quote(fault, spec, strlen(spec), (size_t)(t->at - spec));
        return ms_fail(fault, MS_EUSAGE, "--policy", hint,
                       "unknown policy \"%.*s\"", (int)t->name, t->at);
    }
    if (own == NULL || is_plain(t, own)) {
        ms_text_put(text, t->at, t->length);
        return MS_OK;
    }
    *changed = true;
    join(own, t, text);
    return MS_OK;
}

ms_err ms_policywords_plain(const char *text, ms_arena *arena,
                            const char **plain, ms_fault *fault)
{
    ms_text made = {.arena = arena};
    const char *at = text;
    bool changed = false;
    *plain = text;
    for (bool more = true; more;) {
        size_t length = strcspn(at, "+");
        const typed t = split(at, length);
        MS_TRY(put_policy(&t, &made, &changed, text, fault));
        more = at[length] == '+';
        if (more)
            ms_text_put(&made, "+", 1);
        at += length + more;
    }
    if (changed && !made.failed)
        *plain = made.bytes;
    return made.failed ? ms_fail_nomem(fault) : MS_OK;
}
