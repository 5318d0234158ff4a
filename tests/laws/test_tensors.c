/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ranks that split layers (tensor:T): what they have sums to the whole, what
 * they exchange is what the papers say, one rank alone changes nothing, and
 * every policy beside them keeps the laws of a step. */
#include "graphs/kernels/kernels.h"
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/inlined.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANY(list) (sizeof(list) / sizeof *(list))

#define LAYERS UINT64_C(3)
#define HIDDEN UINT64_C(64)
#define VOCABULARY UINT64_C(512)
#define BATCH UINT64_C(4)
#define SEQUENCE UINT64_C(32)
#define TOKENS (BATCH * SEQUENCE)
#define DECODER(more)                                                          \
    "{\"memsim\": 1, \"name\": \"m\", \"family\": \"decoder\", \"config\": "   \
    "{\"layers\": 3, \"hidden\": 64, \"heads\": 8, \"vocab\": 512, "           \
    "\"positions\": 32" more "}}"
static const char gpt[] = DECODER("");
#define LLAMA                                                                  \
    ", \"kv_heads\": 4, \"norm_type\": \"rms_norm\", \"dropout\": 0, "         \
    "\"positions_type\": \"rotary\", \"activation\": \"swiglu\", "             \
    "\"bias\": false, \"tied\": false, \"ffn\": 96"
static const char llama[] = DECODER(LLAMA);
#define HUGGING_FACE(type, kv)                                                 \
    "{\"model_type\": \"" type "\", \"hidden_size\": 64, \"head_dim\": 8, "    \
    "\"num_hidden_layers\": 3, \"num_attention_heads\": 8, \"vocab_size\": "   \
    "512, \"num_key_value_heads\": " kv ", \"intermediate_size\": 96, "        \
    "\"max_position_embeddings\": 32}"
static const char *const models[] = {gpt, llama};
/* An encoder of the tokens, and a decoder of the first half of them. */
static const char pair[] =
    "{\"memsim\": 1, \"name\": \"m\", \"input\": {\"tokens\": true}, "
    "\"layers\": ["
    "{\"type\": \"embedding\", \"name\": \"tokens\", \"vocab\": 512, "
    "\"dim\": 64, \"inputs\": [\"input\"]}, "
    "{\"type\": \"embedding\", \"name\": \"at\", \"vocab\": 32, \"dim\": 64, "
    "\"ids\": \"positions\", \"inputs\": [\"input\"]}, "
    "{\"type\": \"add\", \"inputs\": [\"tokens\", \"at\"]}, "
    "{\"repeat\": 3, \"name\": \"encoder\", \"layers\": ["
    "{\"type\": \"layer_norm\", \"name\": \"norm1\"}, "
    "{\"type\": \"attention\", \"name\": \"a\", \"heads\": 8}, "
    "{\"type\": \"add\", \"name\": \"sum1\", \"inputs\": [\"a\", "
    "\"input\"]}]}, "
    "{\"type\": \"layer_norm\", \"name\": \"memory\"}, "
    "{\"type\": \"slice\", \"name\": \"first\", \"length\": 16, \"inputs\": "
    "[\"input\"]}, "
    "{\"type\": \"embedding\", \"vocab\": 512, \"dim\": 64, \"tied\": "
    "\"tokens\", \"inputs\": [\"first\"]}, "
    "{\"repeat\": 3, \"name\": \"decoder\", \"layers\": ["
    "{\"type\": \"layer_norm\", \"name\": \"norm1\"}, "
    "{\"type\": \"attention\", \"name\": \"a\", \"heads\": 8}, "
    "{\"type\": \"add\", \"name\": \"sum1\", \"inputs\": [\"a\", "
    "\"input\"]}, "
    "{\"type\": \"layer_norm\", \"name\": \"norm2\"}, "
    "{\"type\": \"attention\", \"name\": \"cross\", \"heads\": 8, "
    "\"causal\": false, \"inputs\": [\"norm2\", \"memory\"]}, "
    "{\"type\": \"add\", \"inputs\": [\"cross\", \"sum1\"]}]}, "
    "{\"type\": \"linear\", \"out\": 512, \"bias\": false}, "
    "{\"type\": \"cross_entropy\"}]}";

static ms_arena keep, trial;
static ms_fault fault;
static ms_result result;

static ms_err run(const char *model, uint32_t kernels, const char *policy)
{
    return inlined_run(model, BATCH, kernels, policy, &keep, &trial, &result,
                       &fault);
}

static void must_run(const char *model, uint32_t kernels, const char *policy)
{
    ck_assert_msg(run(model, kernels, policy) == MS_OK, "%s: %s", policy,
                  fault.what);
}

/* ---- one rank ------------------------------------------------------------ */

static char *graph_text(const char *model, uint32_t kernels, const char *policy)
{
    must_run(model, kernels, policy);
    return inlined_graph_text(&result, &trial);
}

START_TEST(one_rank_changes_nothing)
{
    for (uint32_t kernels = 0; kernels < MS_KERNELS_N; kernels++)
        for (size_t m = 0; m < MANY(models); m++) {
            char *without = graph_text(models[m], kernels, "none");
            char *with = graph_text(models[m], kernels, "tensor:1,sp");
            char *divided = graph_text(models[m], kernels, "context:1");
            ck_assert_str_eq(without, with);
            ck_assert_str_eq(without, divided);
            free(without);
            free(with);
            free(divided);
        }
}
END_TEST

/* ---- what each has ------------------------------------------------------- */

static uint64_t bytes_of(ms_category category)
{
    uint64_t bytes = 0;
    const ms_graph *graph = result.graph;
    for (uint32_t s = 0; s < graph->n_persistent; s++)
        if (graph->storage_category[s] == category &&
            graph->storage_buffer[s] == 0)
            bytes += graph->storage_bytes[s];
    return bytes;
}

/* But for bytes that each of the ranks has, once. */
static void check_parts(const char *model, uint32_t kernels, const char *policy,
                        uint64_t ranks, uint64_t once)
{
    must_run(model, kernels, "none");
    uint64_t all = bytes_of(MS_PARAMETERS);
    must_run(model, kernels, policy);
    ck_assert_uint_eq(ranks * (bytes_of(MS_PARAMETERS) - once) + once, all);
}

/* Of the weights, those of norms, positions and rows' biases are whole on each
 * rank: 2 bytes an element. */
#define GPT_WHOLE                                                              \
    (2 * (LAYERS * (2 * 2 * HIDDEN + 2 * HIDDEN) + 2 * HIDDEN +                \
          SEQUENCE * HIDDEN))
#define LLAMA_WHOLE (2 * (LAYERS * 2 * HIDDEN + HIDDEN))

START_TEST(parts_sum_to_the_whole)
{
    static const uint64_t whole[] = {GPT_WHOLE, LLAMA_WHOLE};
    for (uint32_t kernels = 0; kernels < MS_KERNELS_N; kernels++)
        for (size_t m = 0; m < MANY(models); m++) {
            must_run(models[m], kernels, "none");
            uint64_t all = bytes_of(MS_PARAMETERS);
            uint64_t parameters = result.graph->parameters;
            uint64_t once = whole[m]; /* Liger's loss takes the head whole */
            once += kernels == MS_FUSED ? 2 * VOCABULARY * HIDDEN : 0;
            for (uint64_t ranks = 2; ranks <= 4; ranks *= 2) {
                char policy[32];
                snprintf(policy, sizeof policy, "tensor:%d", (int)ranks);
                must_run(models[m], kernels, policy);
                ck_assert_uint_eq(result.graph->parameters, parameters);
                ck_assert_uint_eq(
                    ranks * (bytes_of(MS_PARAMETERS) - once) + once, all);
            }
        }
}
END_TEST

/* Llama's own code casts the logits before the loss. */
START_TEST(cast_logits_are_split)
{
    static const char model[] = DECODER(LLAMA ", \"code\": \"llama\"");
    check_parts(model, MS_FLASH, "tensor:4,sp", 4, LLAMA_WHOLE);
    const ms_graph *graph = result.graph;
    ck_assert_str_eq(graph->layer_type[graph->n_layers - 2], "cast");
    ck_assert_str_eq(graph->layer_split[graph->n_layers - 3], "columns");
    ck_assert_str_eq(graph->layer_split[graph->n_layers - 1], "vocabulary");
}
END_TEST

/* Gemma 2's blocks end in norms, and its logits are capped. */
START_TEST(norms_and_caps_are_between)
{
    must_run(HUGGING_FACE("gemma2", "4"), MS_FLASH, "tensor:4,sp");
    const ms_graph *graph = result.graph;
    uint32_t n = 0; /* gate, up, down of each block, and the head */
    for (uint32_t l = 0; l < graph->n_layers; l++)
        n += strcmp(graph->layer_type[l], "linear") == 0 &&
             strcmp(graph->layer_split[l], "whole") != 0;
    ck_assert_uint_eq(n, 3 * LAYERS + 1);
    ck_assert_str_eq(graph->layer_split[graph->n_layers - 1], "vocabulary");
    laws_check_levels(result.plan, result.line);
}
END_TEST

/* Phi-3 has gate and up in one product: a rank's columns are of both. */
START_TEST(gate_and_up_in_one)
{
    static const char model[] = HUGGING_FACE("phi3", "8");
    for (uint32_t kernels = 0; kernels < MS_FUSED; kernels++) {
        check_parts(model, kernels, "tensor:4", 4, LLAMA_WHOLE);
        check_parts(model, kernels, "tensor:4,sp", 4, LLAMA_WHOLE);
        laws_check_levels(result.plan, result.line);
    }
    must_run(model, MS_FLASH, "tensor:8"); /* 96 columns are 12 each */
}
END_TEST

/* Cross attention is split by heads, too: norms and rows' biases are whole. */
START_TEST(pairs_are_split)
{
    const uint64_t once = 2 * HIDDEN * (LAYERS * (6 + 3) + 2 + SEQUENCE);
    for (uint32_t kernels = 0; kernels < MS_FUSED; kernels++) {
        check_parts(pair, kernels, "tensor:4", 4, once);
    }
}
END_TEST

/* With 4 heads of keys and values, 8 ranks divide the columns of q, k and v
 * evenly and gather what their product makes, 64 + 2 x 32 columns, in each
 * layer; the gradient is scattered (Megatron-Core from 0.16). */
START_TEST(few_heads_are_gathered)
{
    must_run(llama, MS_MEGATRON, "none");
    uint64_t all = bytes_of(MS_PARAMETERS);
    must_run(llama, MS_MEGATRON, "tensor:8");
    ck_assert_uint_eq(8 * (bytes_of(MS_PARAMETERS) - LLAMA_WHOLE) + LLAMA_WHOLE,
                      all);
    uint64_t states = 2 * TOKENS * HIDDEN, columns = 2 * TOKENS * (64 + 64);
    uint64_t statistics = 3 * 4 * TOKENS;
    ck_assert_uint_eq(laws_exchanged(result.plan),
                      7 *
                          (2 * (4 * LAYERS + 2) * states +
                           2 * LAYERS * columns + 2 * statistics) /
                          8);
    laws_check_rows(result.plan);
    laws_check_levels(result.plan, result.line);
    ck_assert_int_eq(run(llama, MS_FLASH, "tensor:8"), MS_EINPUT);
    ck_assert_str_eq(fault.hint, "tensor:4 would");
}
END_TEST

/* Hugging Face's plans: the embedding is whole on each rank; the head's columns
 * are gathered, and its input's gradient is summed as others are. */
START_TEST(plans_of_hugging_face)
{
    static const uint32_t kernels[] = {MS_EAGER, MS_FLASH};
    const uint64_t table = 2 * VOCABULARY * HIDDEN, once = LLAMA_WHOLE + table;
    const uint64_t states = 2 * TOKENS * HIDDEN,
                   logits = 2 * TOKENS * VOCABULARY;
    for (size_t k = 0; k < MANY(kernels); k++) {
        check_parts(llama, kernels[k], "tensor:4,plan=hf", 4, once);
        ck_assert_uint_eq(laws_exchanged(result.plan),
                          3 * (2 * (4 * LAYERS + 1) * states + logits) / 4);
        laws_check_levels(result.plan, result.line);
    }
    check_parts(gpt, MS_FLASH, "tensor:4,plan=hf", 4, GPT_WHOLE + table);
    must_run(gpt, MS_FLASH, "tensor:4,plan=hf+fsdp:dp=2");
    ck_assert_int_eq(run(gpt, MS_FLASH, "tensor:4,sp,plan=hf"), MS_EUSAGE);
    ck_assert_int_eq(run(gpt, MS_MEGATRON, "tensor:4,plan=hf"), MS_EUSAGE);
}
END_TEST

static bool runs_op(const char *name)
{
    bool found = false;
    for (uint32_t op = 0; op < result.graph->n_ops && !found; op++)
        found = strcmp(result.graph->op_name[op], name) == 0;
    return found;
}

/* Megatron's fused softmax takes heads of all samples by four: a rank that has
 * two of them goes torch's way. */
START_TEST(softmax_is_fused_by_four)
{
    must_run(gpt, MS_KORTHIKANTI, "tensor:8");
    ck_assert(!runs_op("aten::masked_fill"));
    must_run(gpt, MS_KORTHIKANTI, "tensor:8+microbatch:2");
    ck_assert(runs_op("aten::masked_fill"));
    must_run(gpt, MS_KORTHIKANTI, "tensor:4+microbatch:2");
    ck_assert(!runs_op("aten::masked_fill"));
}
END_TEST

/* Adapters of rank 4 at q and v: A whole and B split, at the output of
 * attention A split and B whole (PEFT's LoraParallelLinear). */
static void run_adapted(uint32_t kernels, const char *policy)
{
    ms_job job;
    inlined_begin(&job, &keep, &trial, &fault);
    job.uses = true;
    job.training.batch = (int64_t)BATCH;
    job.training.kernels = (int64_t)kernels;
    job.training.lora_rank = 4;
    job.training.lora_targets = 2; /* attention */
    ms_err err =
        inlined_step(llama, policy, &job, &keep, &trial, &result, &fault);
    ck_assert_msg(err == MS_OK, "%s: %s", policy, fault.what);
}

START_TEST(adapters_are_split)
{
    static const uint32_t kernels[] = {MS_EAGER, MS_FLASH, MS_MEGATRON};
    for (size_t k = 0; k < MANY(kernels); k++)
        for (int sp = 0; sp < 2; sp++) {
            /* q, k, v: A [4, 64] each, one in Megatron; proj: B [64, 4] */
            uint64_t a = kernels[k] == MS_MEGATRON ? 1 : 3;
            uint64_t once = LLAMA_WHOLE + 2 * LAYERS * 4 * (a + 1) * HIDDEN;
            run_adapted(kernels[k], "none");
            uint64_t all = bytes_of(MS_PARAMETERS);
            uint64_t parameters = result.graph->parameters;
            run_adapted(kernels[k], sp ? "tensor:4,sp" : "tensor:4");
            ck_assert_uint_eq(result.graph->parameters, parameters);
            ck_assert_uint_eq(4 * (bytes_of(MS_PARAMETERS) - once) + once, all);
            laws_check_rows(result.plan);
            laws_check_levels(result.plan, result.line);
            laws_check_report(result.line, result.report, true);
        }
}
END_TEST

/* Of latent attention the products down, q's of 32 and keys' and values' of 48
 * + 8, are whole on each rank, and their norms. */
static const char latent[] =
    "{\"memsim\": 1, \"name\": \"m\", \"input\": {\"tokens\": true}, "
    "\"layers\": [{\"type\": \"embedding\", \"vocab\": 512, \"dim\": 64}, "
    "{\"repeat\": 3, \"name\": \"block\", \"layers\": ["
    "{\"type\": \"rms_norm\", \"name\": \"norm\"}, "
    "{\"type\": \"latent_attention\", \"name\": \"a\", \"heads\": 8, "
    "\"q_rank\": 32, \"kv_rank\": 48, \"plain_dim\": 8, "
    "\"rotary_dim\": 8, \"value_dim\": 8}, "
    "{\"type\": \"add\", \"inputs\": [\"a\", \"input\"]}]}, "
    "{\"type\": \"linear\", \"out\": 512, \"bias\": false}, "
    "{\"type\": \"cross_entropy\"}]}";

START_TEST(latent_heads_are_split)
{
    const uint64_t once =
        2 * LAYERS * (HIDDEN + HIDDEN * (32 + 48 + 8) + 32 + 48);
    for (uint32_t kernels = 0; kernels < MS_FUSED; kernels++)
        for (int sp = 0; sp < 2; sp++) {
            must_run(latent, kernels, "none");
            uint64_t all = bytes_of(MS_PARAMETERS);
            must_run(latent, kernels, sp ? "tensor:4,sp" : "tensor:4");
            ck_assert_uint_eq(4 * (bytes_of(MS_PARAMETERS) - once) + once, all);
            laws_check_rows(result.plan);
            laws_check_levels(result.plan, result.line);
            laws_check_report(result.line, result.report, true);
        }
}
END_TEST

/* ---- what they exchange -------------------------------------------------- */

/* Of n all-gathers or reduce-scatters of a hidden state on 4 ranks; an
 * all-reduce is two.  Statistics of the loss: three numbers a token. */
#define RANKS 4u
#define MOVES(n) ((n)*2 * TOKENS * HIDDEN / RANKS * (RANKS - 1))
/* Gradients of norms and row biases, fp32: six a layer, two behind. */
#define NORMS (2 * 4 * (6 * LAYERS + 2) * HIDDEN / RANKS * (RANKS - 1))
/* Of RMS norms, 16 bits: torch sums them, too. */
#define TORCH_NORMS (2 * 2 * (2 * LAYERS + 1) * HIDDEN / RANKS * (RANKS - 1))
#define STATISTICS (3 * 2 * 4 * TOKENS / RANKS * (RANKS - 1))

static const struct {
    const char *model, *policy;
    uint32_t kernels;
    uint64_t bytes;
} volumes[] = {
    /* Shoeybi et al. 2019, section 3: two all-reduces a layer each way; the
     * embedding's, and that of the head's input gradient. */
    {gpt, "tensor:4", MS_FLASH, MOVES(2 * (4 * LAYERS + 2)) + STATISTICS},
    {gpt, "tensor:4", MS_MEGATRON, MOVES(2 * (4 * LAYERS + 2)) + STATISTICS},
    {llama, "tensor:4", MS_EAGER, MOVES(2 * (4 * LAYERS + 2)) + STATISTICS},
    /* Korthikanti et al. 2022, section 4.2.2: each is an all-gather and a
     * reduce-scatter; the embedding is scattered, its gradient gathered. */
    {llama, "tensor:4,sp", MS_FLASH,
     MOVES(8 * LAYERS + 4) + STATISTICS + TORCH_NORMS},
    /* Megatron gathers what products by columns read once more in backward;
     * positions are added to whole embeddings. */
    {gpt, "tensor:4,sp", MS_MEGATRON,
     MOVES(10 * LAYERS + 6) + STATISTICS + NORMS},
    /* In a decoder of half the tokens two sublayers, whose keys are made of the
     * encoder's tokens: their gradient is summed in each layer. */
    {pair, "tensor:4", MS_MEGATRON,
     MOVES(2 * (2 * LAYERS + 1 + LAYERS) + 4 * LAYERS + 2) + STATISTICS / 2},
    /* Jacobs et al. 2023: q, k, v and the result go round, and their gradients,
     * of a quarter of the tokens each; llama has half as many keys. */
    {gpt, "context:4,mode=a2a", MS_FLASH, MOVES(LAYERS * 2 * 4) / RANKS},
    {llama, "context:4,mode=a2a", MS_FLASH, MOVES(LAYERS * 2 * 3) / RANKS},
    /* Of 4 heads of keys 8 ranks have a copy of one each: as many as queries,
     * of an eighth of the tokens (UlyssesSPAttentionHF). */
    {llama, "context:8,mode=a2a", MS_FLASH,
     LAYERS * 2 * 4 * 2 * TOKENS *HIDDEN / 8 / 8 * 7},
    {llama, "context:8,mode=a2a", MS_EAGER,
     LAYERS * 2 * 4 * 2 * TOKENS *HIDDEN / 8 / 8 * 7},
    /* Keys and values of a rank: C - 1 times forward, and C times with their
     * gradients and those of the step backward. */
    {gpt, "context:4,mode=ring", MS_FLASH,
     LAYERS *(RANKS - 1 + 3 * RANKS) * 2 * 2 * TOKENS / RANKS *HIDDEN},
    /* Keys and values are gathered twice, their gradients scattered. */
    {gpt, "context:4,mode=allgather", MS_FLASH, MOVES(6 * LAYERS)},
    {gpt, "context:4,mode=allgather", MS_MEGATRON, MOVES(6 * LAYERS)},
    {llama, "context:4,mode=allgather", MS_FLASH, MOVES(6 * LAYERS / 2)},
    /* With two micro-batches all of it twice, of half the tokens. */
    {gpt, "tensor:4+microbatch:2", MS_FLASH,
     MOVES(2 * (4 * LAYERS + 2)) + STATISTICS},
};

START_TEST(volumes_are_those_of_the_papers)
{
    must_run(volumes[_i].model, volumes[_i].kernels, volumes[_i].policy);
    ck_assert_uint_eq(laws_exchanged(result.plan), volumes[_i].bytes);
    const uint64_t *by_group = result.report->ranks[0].group_bytes;
    ck_assert_uint_eq(by_group[MS_GROUP_TENSOR] + by_group[MS_GROUP_CONTEXT],
                      volumes[_i].bytes);
}
END_TEST

/* In fp8 a part of the sequence is gathered as it is quantized, by bytes: of h,
 * the state in 16 bits, forward gathers h / 2 twice and scatters h twice,
 * backward h / 2 four times and h twice: 7 h a layer for 10. */
START_TEST(quantized_parts_are_gathered)
{
    static const char *const policies[] = {"tensor:4", "tensor:4,sp",
                                           "tensor:4,sp+checkpoint:full"};
    uint64_t bytes[2] = {0};
    for (int fp8 = 0; fp8 < 2; fp8++)
        for (size_t p = 0; p < MANY(policies); p++) {
            ms_job job;
            inlined_begin(&job, &keep, &trial, &fault);
            job.uses = true;
            job.training.batch = (int64_t)BATCH;
            job.training.kernels = MS_MEGATRON;
            job.training.precision = fp8 ? MS_FP8 : MS_BF16_MIXED;
            ms_err err = inlined_step(gpt, policies[p], &job, &keep, &trial,
                                      &result, &fault);
            ck_assert_msg(err == MS_OK, "%s: %s", policies[p], fault.what);
            laws_check_rows(result.plan);
            laws_check_levels(result.plan, result.line);
            laws_check_report(result.line, result.report, true);
            if (p == 1)
                bytes[fp8] = laws_exchanged(result.plan);
        }
    ck_assert_uint_eq(bytes[0] - bytes[1], MOVES(3 * LAYERS));
}
END_TEST

/* ---- beside other policies ----------------------------------------------- */

static const char *const models_beside[] = {gpt, llama, pair};
static const char *const beside[] = {
    "",
    "+checkpoint:full",
    "+checkpoint:selective",
    "+checkpoint:sac",
    "+microbatch:2+checkpoint:sqrt",
    "+ddp:dp=2",
    "+zero:1,dp=2",
    "+zero:3,dp=2+checkpoint:full",
    "+zero:2,dp=2,impl=deepspeed",
    "+fsdp:dp=4,shard=2+microbatch:2",
    "+offload:optimizer",
    "+swap:torchtune",
    "+context:2",
    "+context:2,mode=ring+checkpoint:full",
    "+context:2,mode=ring+zero:1,dp=4+microbatch:2",
    "+context:2,mode=a2a+fsdp:dp=2",
    "+context:2,mode=allgather",
    "+context:2,mode=allgather+zero:1,dp=4+microbatch:2",
};

START_TEST(steps_keep_the_laws)
{
    static const uint32_t kernels[] = {MS_EAGER, MS_FLASH, MS_MEGATRON,
                                       MS_FUSED};
    bool joint = strstr(beside[_i], "ring") || strstr(beside[_i], "allgather");
    bool divides = strstr(beside[_i], "context") != NULL;  /* not the pair's */
    for (size_t k = joint ? 1 : 0; k < MANY(kernels); k++) /* it is fused */
        for (size_t m = 0; m < MANY(models_beside) - divides; m++)
            for (int sp = 0; sp < 2; sp++) {
                char policy[96];
                snprintf(policy, sizeof policy, "tensor:2%s%s", sp ? ",sp" : "",
                         beside[_i]);
                must_run(models_beside[m], kernels[k], policy);
                laws_check_rows(result.plan);
                laws_check_clock(result.plan, result.line, result.machine);
                laws_check_levels(result.plan, result.line);
                laws_check_report(result.line, result.report, true);
                laws_check_steady(result.plan, true);
            }
}
END_TEST

/* What an op on the ranks' queue makes or overwrites is read after it ends. */
START_TEST(results_are_waited_for)
{
    must_run(llama, MS_FLASH, "tensor:4,sp+checkpoint:full");
    const ms_plan *plan = result.plan;
    uint32_t n = 0;
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        uint32_t of = plan->op[op].of;
        if (of == MS_NONE || !result.graph->op_meets[of])
            continue;
        uint32_t next = op + 1;
        while (next < plan->n_ops && plan->op[next].stream != MS_STREAM_COMPUTE)
            next++;
        bool reads = false;
        for (uint32_t u = plan->use_at[next]; u < plan->use_at[next + 1]; u++)
            reads |= plan->row[plan->use[u]].op == op;
        n += reads;
        if (reads)
            ck_assert_uint_ge(result.line->start_ns[next],
                              result.line->end_ns[op]);
    }
    ck_assert_uint_gt(n, 4 * LAYERS);
}
END_TEST

/* ---- what is refused ----------------------------------------------------- */

START_TEST(sizes_that_do_not_divide)
{
    static const char odd[] =
        "{\"memsim\": 1, \"name\": \"m\", \"input\": {\"tokens\": true}, "
        "\"layers\": [{\"type\": \"embedding\", \"vocab\": 64, "
        "\"dim\": 32}, {\"type\": \"attention\", \"heads\": 4, "
        "\"sinks\": true}, {\"type\": \"linear\", \"out\": 64}, "
        "{\"type\": \"cross_entropy\"}]}";
    static const char vit[] =
        "{\"memsim\": 1, \"name\": \"m\", \"input\": {\"shape\": [64]}, "
        "\"layers\": [{\"type\": \"linear\", \"out\": 10}, "
        "{\"type\": \"mse_loss\"}]}";
    ck_assert_int_eq(run(gpt, MS_FLASH, "tensor:3"), MS_EINPUT);
    ck_assert_ptr_nonnull(strstr(fault.what, "8 heads"));
    ck_assert_str_eq(fault.hint, "tensor:2 and tensor:4 would");
    ck_assert_int_eq(run(llama, MS_FLASH, "tensor:8"), MS_EINPUT);
    ck_assert_ptr_nonnull(strstr(fault.what, "4 heads of keys and values"));
    ck_assert_int_eq(run(gpt, MS_FLASH, "context:3"), MS_EINPUT);
    ck_assert_str_eq(fault.hint, "type --sequence 30 or 33");
    ck_assert_int_eq(run(gpt, MS_FLASH, "context:16"), MS_EINPUT);
    ck_assert_ptr_nonnull(strstr(fault.what, "8 heads"));
    ck_assert_int_eq(run(llama, MS_FLASH, "context:16"), MS_EINPUT);
    ck_assert_ptr_nonnull(strstr(fault.what, "8 heads"));
    ck_assert_int_eq(run(llama, MS_MEGATRON, "context:8,mode=a2a"), MS_EINPUT);
    ck_assert_ptr_nonnull(strstr(fault.what, "4 heads"));
    ck_assert_int_eq(run(gpt, MS_EAGER, "context:2,mode=ring"), MS_EINPUT);
    ck_assert_ptr_nonnull(strstr(fault.what, "fused kernel"));
    ck_assert_int_eq(run(odd, MS_FLASH, "context:2,mode=ring"), MS_EINPUT);
    ck_assert_ptr_nonnull(strstr(fault.what, "sinks"));
    ck_assert_int_eq(run(odd, MS_EAGER, "tensor:2+context:2"), MS_OK);
    ck_assert_int_eq(run(gpt, MS_FLASH, "context:4+zero:1,dp=6"), MS_EUSAGE);
    ck_assert_int_eq(run(pair, MS_FLASH, "context:2"), MS_EINPUT);
    ck_assert_ptr_nonnull(strstr(fault.what, "two inputs"));
    ck_assert_int_eq(run(vit, MS_FLASH, "context:2"), MS_EUSAGE);
    ck_assert_int_eq(run(vit, MS_FLASH, "tensor:2"), MS_EINPUT);
    ck_assert_ptr_nonnull(strstr(fault.what, "no layer"));
    ck_assert_int_eq(run(vit, MS_FLASH, "tensor:2,sp"), MS_EUSAGE);
    ck_assert_ptr_nonnull(strstr(fault.what, "no sequence"));
}
END_TEST

static void teardown(void)
{
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}

Suite *suite_tensors(void)
{
    Suite *suite = suite_create("tensors");
    TCase *tcase = tcase_create("tensors");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, one_rank_changes_nothing);
    tcase_add_test(tcase, parts_sum_to_the_whole);
    tcase_add_test(tcase, cast_logits_are_split);
    tcase_add_test(tcase, norms_and_caps_are_between);
    tcase_add_test(tcase, gate_and_up_in_one);
    tcase_add_test(tcase, pairs_are_split);
    tcase_add_test(tcase, plans_of_hugging_face);
    tcase_add_test(tcase, adapters_are_split);
    tcase_add_test(tcase, quantized_parts_are_gathered);
    tcase_add_test(tcase, latent_heads_are_split);
    tcase_add_test(tcase, few_heads_are_gathered);
    tcase_add_test(tcase, softmax_is_fused_by_four);
    tcase_add_loop_test(tcase, volumes_are_those_of_the_papers, 0,
                        (int)MANY(volumes));
    tcase_add_loop_test(tcase, steps_keep_the_laws, 0, (int)MANY(beside));
    tcase_add_test(tcase, results_are_waited_for);
    tcase_add_test(tcase, sizes_that_do_not_divide);
    suite_add_tcase(suite, tcase);
    return suite;
}
