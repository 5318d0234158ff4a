/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ranks that divide the experts of a layer (expert:E): what they have sums to
 * the whole, what they exchange is what the closed forms say, one rank alone
 * changes nothing, and every policy beside them keeps the laws of a step. */
#include "graphs/kernels/kernels.h"
#include "sim/fold/fold.h"
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/inlined.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/jobprogram.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANY(list) (sizeof(list) / sizeof *(list))

#define LAYERS UINT64_C(3)
#define HIDDEN UINT64_C(64)
#define INNER UINT64_C(32)
#define EXPERTS UINT64_C(8)
#define CHOSEN UINT64_C(2)
#define BATCH UINT64_C(4)
#define SEQUENCE UINT64_C(32)
#define ROWS (BATCH * SEQUENCE * CHOSEN)
#define SPARSE(more)                                                           \
    "{\"memsim\": 1, \"name\": \"m\", \"input\": {\"tokens\": true, "          \
    "\"longest\": 32}, \"layers\": [{\"type\": \"embedding\", \"name\": "      \
    "\"words\", \"vocab\": 512, \"dim\": 64}, {\"repeat\": 3, \"name\": "      \
    "\"b\", \"layers\": [{\"type\": \"attention\", \"name\": \"a\", "          \
    "\"heads\": 8, \"bias\": false}, {\"type\": \"add\", \"name\": \"r\", "    \
    "\"inputs\": [\"a\", \"input\"]}, {\"type\": \"moe\", \"name\": \"e\", "   \
    "\"experts\": 8, \"top_k\": 2, \"hidden\": 32" more "}, {\"type\": "       \
    "\"add\", \"inputs\": [\"e\", \"r\"]}]}, {\"type\": \"linear\", "          \
    "\"name\": \"head\", \"out\": 512}, {\"type\": \"cross_entropy\"}]}"
static const char plain[] = SPARSE("");
static const char deep[] = SPARSE(", \"weighted\": \"gate\", \"score\": "
                                  "\"sigmoid\", \"router_bias\": "
                                  "\"balancing\", \"router_fp32\": true");
static const char gelu[] =
    SPARSE(", \"weighted\": \"gate\", \"gated\": false, \"capacity\": 1.25");
static const char lossy[] = SPARSE(", \"aux_loss\": 0.01, \"z_loss\": 0.001");
static const char apart[] = SPARSE(", \"run\": \"each\"");
static const char apart_gate[] =
    SPARSE(", \"run\": \"each\", \"weighted\": \"gate\"");
static const char *const models[] = {plain, deep,  gelu,
                                     lossy, apart, apart_gate};

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

static void expect_equal(uint32_t kernels, const char *model, const char *a,
                         const char *b)
{
    char *without = graph_text(model, kernels, a);
    char *with = graph_text(model, kernels, b);
    ck_assert_str_eq(without, with);
    free(without);
    free(with);
}

START_TEST(one_rank_changes_nothing)
{
    for (uint32_t kernels = 0; kernels < MS_KERNELS_N; kernels++)
        for (size_t m = 0; m < MANY(models); m++) {
            expect_equal(kernels, models[m], "none", "expert:1");
            expect_equal(kernels, models[m], "none", "expert:1,etp=1");
            expect_equal(kernels, models[m], "tensor:2,sp",
                         "tensor:2,sp+expert:1");
            if (kernels != MS_NANOTRON) /* it divides no sequence */
                expect_equal(kernels, models[m], "zero:1,dp=4+context:2",
                             "zero:1,dp=4+context:2+expert:1");
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

/* Of all layers, in elements of the weights. */
static uint64_t experts_of(const char *model)
{
    uint64_t inner = model == gelu ? INNER : 2 * INNER;
    return LAYERS * EXPERTS * HIDDEN * (inner + INNER);
}

START_TEST(parts_sum_to_the_whole)
{
    static const struct {
        const char *policy;
        uint64_t parts;
    } cases[] = {{"expert:2", 2},
                 {"expert:8", 8},
                 {"expert:4+ddp:dp=8", 4},
                 {"expert:4+context:2", 4}};
    for (size_t m = 0; m < MANY(models); m++)
        for (size_t c = 0; c < MANY(cases); c++) {
            must_run(models[m], MS_FLASH, "none");
            uint64_t all = bytes_of(MS_PARAMETERS);
            uint64_t parameters = result.graph->parameters;
            uint64_t experts = 2 * experts_of(models[m]);
            must_run(models[m], MS_FLASH, cases[c].policy);
            ck_assert_uint_eq(result.graph->parameters, parameters);
            ck_assert_uint_eq(bytes_of(MS_PARAMETERS),
                              all - experts + experts / cases[c].parts);
        }
}
END_TEST

/* Each expert's state is on one of the ranks that have it. */
START_TEST(states_are_divided_among_those_that_have_the_expert)
{
    static const struct {
        const char *policy;
        uint64_t ranks, inner; /* all of them; tensor's */
    } cases[] = {{"expert:4+zero:1,dp=8", 8, 1},
                 {"expert:8+zero:2,dp=8", 8, 1},
                 {"expert:2+zero:3,dp=8", 8, 1},
                 {"expert:4+fsdp:dp=8", 8, 1},
                 {"tensor:2,sp+expert:4,etp=1+zero:1,dp=4", 8, 2},
                 {"tensor:2,sp+expert:2+zero:1,dp=4", 8, 2}};
    for (size_t c = 0; c < MANY(cases); c++) {
        must_run(plain, MS_FLASH, "none");
        uint64_t all = bytes_of(MS_OPTIMIZER_STATE), whole = 0, part = 0;
        const ms_graph *graph = result.graph;
        must_run(plain, MS_FLASH, cases[c].policy);
        graph = result.graph;
        for (uint32_t s = 0; s < graph->n_persistent; s++) {
            bool state = graph->storage_category[s] == MS_OPTIMIZER_STATE;
            bool expert = ms_graph_group(graph, s) == MS_GROUP_EXPERT_DATA;
            part += state && expert ? graph->storage_bytes[s] : 0;
        }
        whole = all > 0 ? 12 * experts_of(plain) : 0;
        if (strstr(cases[c].policy, "fsdp")) /* the part is the master */
            whole = 8 * experts_of(plain);
        ck_assert_uint_eq(cases[c].ranks * part, whole);
    }
}
END_TEST

/* ---- what they exchange -------------------------------------------------- */

/* There, back, and the gradients of both, of all rows of 16 bits; p goes along
 * in 2 bytes a row where the gate is weighted. */
#define A2A(rows, width, ranks)                                                \
    (4 * LAYERS * (rows) * (width) / (ranks) * ((ranks)-1))
#define THERE(rows, width, ranks)                                              \
    (2 * LAYERS * (rows) * (width) / (ranks) * ((ranks)-1))

#define UNIQUE UINT64_C(238)

static const struct {
    const char *model, *policy;
    uint64_t across, within;
} volumes[] = {
    {plain, "expert:4", A2A(ROWS, 2 * HIDDEN, 4), 0},
    {plain, "expert:8+zero:1,dp=8", A2A(ROWS, 2 * HIDDEN, 8), 0},
    {plain, "expert:4+microbatch:2", A2A(ROWS, 2 * HIDDEN, 4), 0},
    /* The fullest rank receives more than it sends. */
    {plain, "expert:4,imbalance=1.5", A2A(ROWS * 3 / 2, 2 * HIDDEN, 4), 0},
    {plain, "expert:4,imbalance=3/3/1/1/1/1/1/1", A2A(ROWS * 2, 2 * HIDDEN, 4),
     0},
    /* A capacity pads what is sent, too. */
    {plain, "expert:4,capacity=1.25", A2A(ROWS * 5 / 4, 2 * HIDDEN, 4), 0},
    {deep, "expert:2", A2A(ROWS, 2 * HIDDEN, 2) + THERE(ROWS, 4, 2), 0},
    {gelu, "expert:4",
     A2A(ROWS * 5 / 4, 2 * HIDDEN, 4) + THERE(ROWS * 5 / 4, 2, 4), 0},
    /* A recomputed forward goes there and back once more. */
    {plain, "expert:4+checkpoint:full", A2A(ROWS, 2 * HIDDEN, 4) * 3 / 2, 0},
    /* Each rank has a part of the sequence; those that split an expert give
     * each other their rows, and add up what they have made of them. */
    {plain, "tensor:2,sp+expert:4,etp=1", A2A(ROWS / 2, 2 * HIDDEN, 4), 0},
    {plain, "tensor:2,sp+expert:4", A2A(ROWS / 2, 2 * HIDDEN, 4),
     4 * LAYERS *ROWS * 2 * HIDDEN / 2},
    {plain, "tensor:2,sp", 0, 0},
    {plain, "context:2+expert:4", A2A(ROWS / 2, 2 * HIDDEN, 4), 0},
    /* A token once for each rank that has an expert of it: of all 4 ranks'
     * tokens 1 - C(6, 2) / C(8, 2), with 8 bytes for each choice, 2 for its
     * p; the gradient of p comes back with that of the token. */
    {plain, "expert:4,dispatch=deepep",
     LAYERS * 3 * (4 * UNIQUE * 2 * HIDDEN + UNIQUE * (8 + 2 + 2) * CHOSEN) / 4,
     0},
};

START_TEST(volumes_are_the_closed_forms)
{
    must_run(volumes[_i].model, MS_FLASH, volumes[_i].policy);
    const uint64_t *bytes = result.report->ranks[0].group_bytes;
    ck_assert_uint_eq(bytes[MS_GROUP_EXPERT], volumes[_i].across);
    ck_assert_uint_eq(bytes[MS_GROUP_EXPERT_TENSOR], volumes[_i].within);
}
END_TEST

/* Rows that are received are saved by the first product and by those behind
 * it; what is sent is not saved at all. */
START_TEST(imbalance_is_in_what_is_received)
{
    must_run(plain, MS_FLASH, "expert:4");
    uint64_t even = result.report->ranks[0].saved_for_backward_bytes;
    must_run(plain, MS_FLASH, "expert:4,imbalance=1.5");
    uint64_t row = 2 * HIDDEN + 3 * 2 * INNER + 2 * 4;
    ck_assert_uint_eq(result.report->ranks[0].saved_for_backward_bytes - even,
                      LAYERS * ROWS / 2 * row);
}
END_TEST

/* ---- beside other policies ----------------------------------------------- */

static const char *const beside[] = {
    "expert:4",
    "expert:4+checkpoint:full",
    "expert:8+checkpoint:sac",
    "expert:4+microbatch:2+checkpoint:sqrt",
    "expert:2+ddp:dp=4",
    "expert:4+zero:1,dp=8",
    "expert:8+zero:2,dp=8",
    "expert:4+zero:3,dp=4+checkpoint:full",
    "expert:2+zero:3,dp=8,prefetch=2+microbatch:2",
    "expert:4+zero:1,dp=4,impl=megatron",
    "expert:2+fsdp:dp=8+microbatch:2",
    "expert:2+fsdp:dp=8,shard=4+checkpoint:full",
    "expert:4+fsdp:dp=4",
    "expert:4+zero:2,dp=8+offload:optimizer",
    "expert:4+swap:torchtune",
    "expert:4+zero:1,dp=4+swap:te=2",
    "context:2+expert:4+zero:1,dp=8",
    "context:2,mode=ring+expert:2+zero:3,dp=4",
    "tensor:2,sp+expert:4+zero:1,dp=8",
    "tensor:2,sp+expert:4,etp=1+zero:2,dp=4+checkpoint:full",
    "tensor:2,sp+expert:1,etp=1+ddp:dp=2",
    "tensor:2,sp+context:2+expert:2+fsdp:dp=4",
    "expert:4,imbalance=1.7+zero:1,dp=4",
    "expert:4,dispatch=deepep+zero:1,dp=8",
    "expert:8,dispatch=deepep+fsdp:dp=8+microbatch:2+checkpoint:full",
    "tensor:2,sp+expert:8,etp=1,dispatch=deepep+zero:3,dp=4",
    "expert:4,capacity=1.5+zero:1,dp=4+checkpoint:full",
};

START_TEST(steps_keep_the_laws)
{
    static const uint32_t kernels[] = {MS_FLASH, MS_MEGATRON, MS_FUSED};
    for (size_t k = 0; k < MANY(kernels); k++)
        for (size_t m = 0; m < MANY(models); m++) {
            if (models[m] == gelu && strstr(beside[_i], "imbalance"))
                continue; /* it has a capacity */
            must_run(models[m], kernels[k], beside[_i]);
            laws_check_rows(result.plan);
            laws_check_clock(result.plan, result.line, result.machine);
            laws_check_levels(result.plan, result.line);
            laws_check_report(result.line, result.report, true);
            laws_check_steady(result.plan, true);
        }
}
END_TEST

/* Peak and time by folding calls, and by replay. */
START_TEST(folds_are_replays)
{
    ms_job job;
    ms_expand_opts opts;
    ms_fold *fold;
    ms_folded folded;
    inlined_begin(&job, &keep, &trial, &fault);
    job.training.batch = (int64_t)BATCH;
    ck_assert_msg(
        inlined_lower(deep, beside[_i], &job, &keep, &result, &fault) == MS_OK,
        "%s: %s", beside[_i], fault.what);
    ck_assert_int_eq(ms_jobprogram_make(&job, &trial, &opts, &result, &fault),
                     MS_OK);
    ck_assert_int_eq(
        ms_fold_open(result.graph, &opts, result.machine, &keep, &fold, &fault),
        MS_OK);
    ck_assert_int_eq(ms_fold_program(fold, result.program, &folded, &fault),
                     MS_OK);
    ms_fold_close(fold);
    if (strstr(beside[_i], "torchtune")) { /* hooks are replayed */
        ck_assert_int_ne(folded.why, MS_FOLD_WHOLE);
        return;
    }
    ck_assert_int_eq(folded.why, MS_FOLD_WHOLE);
    must_run(deep, MS_FLASH, beside[_i]);
    ck_assert_uint_eq(folded.peak_bytes,
                      result.line->ranks[0].pool[MS_DEVICE_POOL].peak_bytes);
    ck_assert_uint_eq(folded.active_bytes,
                      result.line->ranks[0].reserved_peak_bytes);
    ck_assert_uint_eq(folded.step_ns, result.line->step_ns);
}
END_TEST

static const char *const stages[] = {
    "pipeline:3+expert:4+zero:1,dp=4+microbatch:4",
    "pipeline:2+expert:2+ddp:dp=2+microbatch:4+checkpoint:full",
    "pipeline:2+tensor:2,sp+expert:2+zero:2,dp=2+microbatch:2",
};

START_TEST(stages_keep_the_laws)
{
    must_run(plain, MS_FLASH, stages[_i]);
    laws_check_levels(result.plan, result.line);
}
END_TEST

/* ---- what is refused ----------------------------------------------------- */

static void expect_refused(const char *model, uint32_t kernels,
                           const char *policy, ms_err err, const char *what,
                           const char *hint)
{
    ck_assert_int_eq(run(model, kernels, policy), err);
    ck_assert_msg(strstr(fault.what, what) != NULL, "%s: %s", policy,
                  fault.what);
    ck_assert_str_eq(fault.hint, hint);
}

START_TEST(what_does_not_divide_is_refused)
{
    static const char dense[] =
        "{\"memsim\": 1, \"name\": \"m\", \"input\": {\"shape\": [64]}, "
        "\"layers\": [{\"type\": \"linear\", \"out\": 10}, "
        "{\"type\": \"mse_loss\"}]}";
    expect_refused(plain, MS_FLASH, "expert:3", MS_EINPUT, "8 experts",
                   "expert:2 and expert:4 would");
    expect_refused(plain, MS_FLASH, "expert:16", MS_EINPUT, "16 ranks",
                   "expert:8 would");
    expect_refused(plain, MS_FLASH, "expert:4+zero:1,dp=6", MS_EUSAGE, "6 GPUs",
                   "expert:3 and expert:6 would");
    expect_refused(plain, MS_FLASH, "tensor:2,sp+expert:2,etp=3", MS_EUSAGE,
                   "2 ranks that split layers", "etp=2 would");
    expect_refused(plain, MS_FLASH, "tensor:2+expert:2", MS_EUSAGE,
                   "parts of the sequence", "type tensor:2,sp");
    expect_refused(dense, MS_FLASH, "expert:2", MS_EUSAGE, "no experts",
                   "leave it out for this model");
    expect_refused(plain, MS_FLASH, "expert:4,imbalance=1/2/3/4/5/6", MS_EUSAGE,
                   "6 experts", "give 8 loads");
    expect_refused(plain, MS_FLASH, "expert:2,imbalance=1/2/3/4", MS_EINPUT,
                   "8 experts", "give one for each");
    expect_refused(plain, MS_FLASH, "expert:2,imbalance=0.9", MS_EUSAGE,
                   "no fewer rows", "type 1 where all ranks have as many");
    expect_refused(plain, MS_FLASH, "expert:2,imbalance=2.5", MS_EUSAGE,
                   "cannot have 2.5 times", "one rank has all rows at most");
    expect_refused(plain, MS_FLASH, "expert:2,imbalance=1.5,capacity=1",
                   MS_EUSAGE, "as many rows", "leave one of the two out");
    expect_refused(gelu, MS_FLASH, "expert:2,imbalance=1.5", MS_EINPUT,
                   "has a capacity", "leave imbalance= out");
    expect_refused(plain, MS_FLASH, "expert:1,dispatch=deepep", MS_EUSAGE,
                   "dispatches nothing", "leave it out");
    expect_refused(plain, MS_FLASH, "expert:2+deepspeed:2,dp=4", MS_EUSAGE,
                   "flat buffers", "take zero or fsdp (impl=2) beside it");
    expect_refused(plain, MS_FLASH, "expert:2+zero:3,dp=4,expert_ranks=2",
                   MS_EUSAGE, "follows", "leave expert_ranks out");
}
END_TEST

static void teardown(void)
{
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}

Suite *suite_expert_ranks(void)
{
    Suite *suite = suite_create("expert_ranks");
    TCase *tcase = tcase_create("expert_ranks");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, one_rank_changes_nothing);
    tcase_add_test(tcase, parts_sum_to_the_whole);
    tcase_add_test(tcase, states_are_divided_among_those_that_have_the_expert);
    tcase_add_loop_test(tcase, volumes_are_the_closed_forms, 0,
                        (int)MANY(volumes));
    tcase_add_test(tcase, imbalance_is_in_what_is_received);
    tcase_add_loop_test(tcase, steps_keep_the_laws, 0, (int)MANY(beside));
    tcase_add_loop_test(tcase, folds_are_replays, 0, (int)MANY(beside));
    tcase_add_loop_test(tcase, stages_keep_the_laws, 0, (int)MANY(stages));
    tcase_add_test(tcase, what_does_not_divide_is_refused);
    suite_add_tcase(suite, tcase);
    return suite;
}
