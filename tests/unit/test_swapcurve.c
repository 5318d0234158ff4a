/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Swapping the layers of transformers: how far ahead copies are sent for
 * against what arithmetic says of peak and time; what Megatron's modules move;
 * vDNN_dyn's choice. */
#include "graphs/kernels/kernels.h"
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/names.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/tests.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"

#include <stdio.h>
#include <string.h>

#define LAYERS 12u /* gpt3-small */
#define AWAY 6u    /* blocks 0 .. AWAY - 1 leave */
#define LATENCY_NS 1000u

static ms_arena keep, trial;
static ms_fault fault;
static ms_result result;
static ms_machine machine;
static struct {
    ms_program program;
    ms_plan plan;
    ms_timeline line;
} nouns; /* of result */

static void teardown(void)
{
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}

static void setup(void)
{
    keep = trial = (ms_arena){0};
    fault = (ms_fault){0};
    result = (ms_result){
        .program = &nouns.program, .plan = &nouns.plan, .line = &nouns.line};
    machine = (ms_machine){.capacity_bytes = UINT64_C(1) << 40};
}

static void lower_with(const char *model, int64_t batch, int64_t kernels)
{
    ms_job job;
    ms_settings_init(&job);
    job.model = model;
    job.training.batch = batch;
    job.training.kernels = kernels;
    ck_assert_msg(ms_jobway_read(&job, &keep, &result, &fault) == MS_OK &&
                      ms_jobway_lower(&job, &keep, &result, &fault) == MS_OK,
                  "%s: %s", fault.where, fault.what);
}

static void lower(const char *model, int64_t batch)
{
    ms_job job;
    ms_settings_init(&job);
    lower_with(model, batch, job.training.kernels);
}

/* Copies out take no time, those in rate; the host issues at once. */
static const ms_rank_report *step(const char *policy, double rate)
{
    static ms_report report;
    ms_spec spec = {0};
    ms_expand_opts opts = {.h2d_bytes_per_s = rate,
                           .copy_ns = rate > 0 ? LATENCY_NS : 0};
    ms_policy_context context = {.graph = result.graph,
                                 .arena = &trial,
                                 .opts = &opts,
                                 .machine = &machine};
    ck_assert_msg(
        ms_spec_parse(policy, &trial, &spec, &fault) == MS_OK &&
            ms_apply_program(&spec, &context, 1, result.program, &fault) ==
                MS_OK &&
            ms_expand(result.graph, result.program, &opts, &trial, result.plan,
                      &fault) == MS_OK &&
            ms_replay(result.plan, &machine, &trial, result.line, &fault) ==
                MS_OK &&
            ms_measure(result.line, &machine, &trial, &report, &fault) == MS_OK,
        "%s: %s: %s", policy, fault.where, fault.what);
    return &report.ranks[0];
}

/* ---- the curve ----------------------------------------------------------- */

typedef struct block {
    uint64_t bytes, copy_ns, backward_ns;
    uint32_t backward; /* its first backward op */
} block;

/* A block's saved tensors, made by an op of it or before (its input), read by
 * its units last: what swap:te moves. */
static block block_of(uint32_t b, double rate)
{
    const ms_graph *graph = result.graph;
    block it = {.backward = MS_NONE};
    uint32_t *reader = ms_arena_take(&trial, graph->n_storages, sizeof *reader);
    for (uint32_t op = 0; op < graph->forward_at[graph->n_units]; op++) {
        for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++)
            reader[graph->in[i]] = graph->unit_block[graph->op_unit[op]];
        for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++)
            reader[graph->out[i]] = graph->unit_block[graph->op_unit[op]];
    }
    for (uint32_t s = graph->n_persistent; s < graph->n_storages; s++) {
        uint64_t bytes = graph->storage_bytes[s];
        if (graph->storage_saved_end[s] == MS_NONE || reader[s] != b ||
            bytes < 1024)
            continue;
        it.bytes += bytes;
        it.copy_ns += LATENCY_NS + (uint64_t)((double)bytes / rate * 1e9 + 0.5);
    }
    for (uint32_t u = 0; u < graph->n_units; u++) {
        if (graph->unit_block[u] != b)
            continue;
        it.backward = graph->backward_at[u + 1];
        /* A gradient becomes .grad as it is: that takes no time. */
        for (uint32_t op = it.backward; op < graph->backward_at[u]; op++)
            if (graph->op_pass[op] != MS_ACCUMULATE)
                it.backward_ns += graph->op_ns[op];
    }
    return it;
}

/* The device's level when the backward of graph op begins. */
static uint64_t level_at(uint32_t graph_op)
{
    const ms_plan *plan = result.plan;
    uint64_t bytes = 0;
    for (uint32_t e = 0; e < result.line->n_events; e++) {
        const ms_event *event = &result.line->events[e];
        const ms_row *row = &plan->row[event->row];
        if (plan->op[event->op_act >> 1].of == graph_op)
            break;
        if (row->pool == MS_DEVICE_POOL)
            bytes += event->op_act & 1u ? row->bytes : -row->bytes;
    }
    return bytes;
}

/* Sent for at once, a copy's time is stalled in full.  Sent for D blocks
 * ahead, the copies run one after the other beside D backwards and those of
 * the AWAY - 1 blocks that they serve. */
static uint64_t stall_ns(uint64_t copy_ns, uint64_t backward_ns, uint32_t ahead)
{
    uint64_t copies_ns = AWAY * copy_ns;
    uint64_t covered_ns = (ahead + AWAY - 1) * backward_ns;
    if (ahead == 0)
        return copies_ns;
    if (copy_ns <= backward_ns)
        return 0;
    return copies_ns > covered_ns ? copies_ns - covered_ns : 0;
}

static void check_distance(uint32_t ahead, double rate, uint64_t base_ns)
{
    char policy[64];
    uint32_t middle = 5; /* the copies of 4, 3, 2, 1 are sent for by then */
    block it = block_of(middle, rate);
    snprintf(policy, sizeof policy, "swap:te=%u,min=1KiB,prefetch=%u", AWAY,
             0u);
    step(policy, rate);
    uint64_t level = level_at(it.backward);
    snprintf(policy, sizeof policy, "swap:te=%u,min=1KiB,prefetch=%u", AWAY,
             ahead);
    const ms_rank_report *rank = step(policy, rate);
    ck_assert_uint_eq(level_at(it.backward), level + ahead * it.bytes);
    ck_assert_uint_eq(rank->time.stall_ns,
                      stall_ns(it.copy_ns, it.backward_ns, ahead));
    ck_assert_uint_eq(rank->time.step_ns, base_ns + rank->time.stall_ns);
}

START_TEST(distance_gives_the_curve)
{
    static const double copies[] = {0.3, 0.9, 1.25, 1.5, 3};
    static const uint32_t distances[] = {0, 1, 2, 4};
    lower("gpt3-small", 2);
    uint64_t base_ns = step("none", 0)->time.step_ns;
    block it = block_of(0, 1e12);
    for (uint32_t b = 1; b < AWAY; b++) { /* equal layers */
        ck_assert_uint_eq(block_of(b, 1e12).backward_ns, it.backward_ns);
        ck_assert_uint_eq(block_of(b, 1e12).bytes, it.bytes);
    }
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) {
        double rate =
            (double)it.bytes / (copies[i] * (double)it.backward_ns) * 1e9;
        for (size_t d = 0; d < sizeof distances / sizeof *distances; d++)
            check_distance(distances[d], rate, base_ns);
    }
}
END_TEST

/* ---- megatron ------------------------------------------------------------ */

/* Tensors of batch x sequence x hidden that leave, of 16 bits each. */
static uint64_t moved(const char *arguments, const ms_rank_report **rank)
{
    char policy[160];
    snprintf(policy, sizeof policy, "swap:megatron,%s", arguments);
    *rank = step(policy, 0);
    ck_assert_uint_eq((*rank)->d2h_bytes, (*rank)->h2d_bytes);
    ck_assert_uint_eq((*rank)->d2h_bytes % (2 * 2048 * 768 * 2), 0);
    return (*rank)->d2h_bytes / (2 * 2048 * 768 * 2);
}

#define ALL "modules=attn_norm/qkv_linear/core_attn/attn_proj/mlp_norm"

START_TEST(megatron_moves_the_inputs_of_modules)
{
    const ms_rank_report *rank;
    lower("gpt3-small", 2);
    uint64_t none = step("none", 0)->levels[MS_MARK_AFTER_FORWARD];
    /* Each one tensor, save for q, k and v; the last group stays. */
    ck_assert_uint_eq(moved("modules=attn_norm", &rank), LAYERS - 1);
    ck_assert_uint_eq(moved("modules=qkv_linear", &rank), LAYERS - 1);
    ck_assert_uint_eq(moved("modules=core_attn", &rank), 3 * (LAYERS - 1));
    ck_assert_uint_eq(moved("modules=mlp_norm", &rank), LAYERS - 1);
    ck_assert_uint_eq(moved("modules=core_attn/attn_proj", &rank),
                      4 * LAYERS - 1);
    ck_assert_uint_eq(moved(ALL, &rank), 7 * LAYERS - 1);
    ck_assert_uint_eq(rank->levels[MS_MARK_AFTER_FORWARD],
                      none - rank->d2h_bytes);
    ck_assert_uint_eq(moved("modules=attn_norm,fraction=50", &rank), 6);
    ck_assert_uint_eq(moved("modules=attn_norm,fraction=0", &rank), 0);
    ck_assert_uint_eq(moved("modules=attn_norm,min=1GiB", &rank), 0);
    ck_assert_uint_eq(moved(ALL ",inflight=2", &rank), 7 * LAYERS - 1);
}
END_TEST

/* Attention op by op saves its probabilities and their mask; these leave with
 * queries, keys and values. */
START_TEST(megatron_moves_what_a_module_saves)
{
    lower_with("gpt3-small", 2, MS_EAGER);
    const ms_rank_report *rank = step("swap:megatron,modules=core_attn", 0);
    uint64_t scores = 2 * 12 * 2048 * UINT64_C(2048);
    ck_assert_uint_ge(rank->d2h_bytes, (LAYERS - 1) * 2 * scores);
}
END_TEST

START_TEST(megatron_finds_experts)
{
    lower("mixtral-8x7b", 1);
    const ms_rank_report *rank =
        step("swap:megatron,modules=expert_fc1/moe_act", 0);
    /* 2048 tokens go to 2 of 8 experts each: hidden 4096, then gate and up of
     * 14336, in 32 layers; the last moe_act stays. */
    uint64_t rows = 2 * 2048 * UINT64_C(2);
    ck_assert_uint_eq(rank->d2h_bytes,
                      32 * rows * 4096 + 31 * rows * 2 * 14336);
}
END_TEST

static void refuse(const char *policy, const char *what, const char *hint)
{
    ms_spec spec = {0};
    ms_policy_context context = {.graph = result.graph, .arena = &trial};
    fault = (ms_fault){0};
    ck_assert_int_eq(ms_spec_parse(policy, &trial, &spec, &fault), MS_OK);
    ck_assert_int_eq(
        ms_apply_program(&spec, &context, 1, result.program, &fault),
        MS_EUSAGE);
    ck_assert_str_eq(fault.what, what);
    ck_assert_str_eq(fault.hint, hint);
}

START_TEST(refused)
{
    lower("gpt3-small", 1);
    refuse("swap:megatron", "no module is named",
           "write e.g. swap:megatron,modules=core_attn/attn_proj");
    refuse("swap:megatron,modules=attn_proj",
           "attn_proj goes with core_attn only",
           "write modules=core_attn/attn_proj");
    refuse("swap:megatron,modules=moe_act",
           "no block of the model has a moe_act", "leave it out");
    refuse("swap:belady",
           "this policy measures a step, and nothing says how fast copies are",
           "give it a device to run the step on");
}
END_TEST

/* ---- vDNN_dyn ------------------------------------------------------------ */

static uint64_t peak(const char *policy)
{
    return step(policy, 50e9)->peak.allocated_bytes;
}

/* The fastest of none, conv and all that fits. */
START_TEST(vdnn_dyn_takes_the_fastest_that_fits)
{
    lower("vgg16", 32);
    static const char *const fixed[] = {"none", "swap:vdnn=conv",
                                        "swap:vdnn=all"};
    char policy[64];
    uint64_t last_ns = 0;
    for (size_t i = 0; i < 3; i++) {
        uint64_t budget = peak(fixed[i]);
        uint64_t step_ns = step(fixed[i], 50e9)->time.step_ns;
        snprintf(policy, sizeof policy, "swap:vdnn=dyn,budget=%llu",
                 (unsigned long long)budget);
        ck_assert_uint_le(peak(policy), budget);
        ck_assert_uint_le(step(policy, 50e9)->time.step_ns, step_ns);
        ck_assert_uint_ge(step(policy, 50e9)->time.step_ns, last_ns);
        last_ns = step(policy, 50e9)->time.step_ns;
    }
}
END_TEST

Suite *suite_swapcurve(void)
{
    Suite *suite = suite_create("swapcurve");
    TCase *tcase = tcase_create("swapcurve");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, distance_gives_the_curve);
    tcase_add_test(tcase, megatron_moves_the_inputs_of_modules);
    tcase_add_test(tcase, megatron_moves_what_a_module_saves);
    tcase_add_test(tcase, megatron_finds_experts);
    tcase_add_test(tcase, refused);
    tcase_add_test(tcase, vdnn_dyn_takes_the_fastest_that_fits);
    suite_add_tcase(suite, tcase);
    return suite;
}
