/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Gradients of parameters that ranks have whole and parts of which each makes
 * (norms under sequence parallelism): one tensor of all of them is summed
 * before the step, as large as they are, however many layers there are, or,
 * with torch's kernels, each on its own. */
#include "graphs/kernels/kernels.h"
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/replay/collective.h"
#include "sim/timeline.h"
#include "tests/inlined.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

#include <stdio.h>
#include <string.h>

#define HIDDEN UINT64_C(64)

static ms_arena keep, trial;
static ms_fault fault;
static ms_result result;

static void run_batch(const char *more, int layers, uint32_t batch,
                      uint32_t kernels, const char *policy)
{
    char model[512];
    snprintf(model, sizeof model,
             "{\"memsim\": 1, \"name\": \"m\", \"family\": \"decoder\", "
             "\"config\": {\"layers\": %d, \"hidden\": 64, \"heads\": 8, "
             "\"vocab\": 512, \"positions\": 32%s}}",
             layers, more);
    ck_assert_msg(inlined_run(model, batch, kernels, policy, &keep, &trial,
                              &result, &fault) == MS_OK,
                  "%s: %s", policy, fault.what);
}

static void must_run(const char *more, int layers, uint32_t kernels,
                     const char *policy)
{
    run_batch(more, layers, 4, kernels, policy);
}

/* Bytes of the sum and how many copies come out of it; 0: there is none. */
static uint64_t summed(uint32_t *copies)
{
    const ms_graph *g = result.graph;
    uint64_t bytes = 0;
    uint32_t flat = MS_NONE;
    *copies = 0;
    for (uint32_t op = g->step_first; op < g->n_ops; op++) {
        if (g->op_meets && g->op_meets[op]) {
            ck_assert_uint_eq(MS_MEETS_GROUP(g->op_meets[op]), MS_GROUP_TENSOR);
            ck_assert_uint_eq(MS_MEETS_COLLECTIVE(g->op_meets[op]),
                              MS_ALL_REDUCE);
            ck_assert_uint_eq(flat, MS_NONE); /* once */
            flat = g->in[g->in_at[op]];
            bytes = g->storage_bytes[flat];
        }
        for (uint32_t i = g->in_at[op]; i < g->in_at[op + 1] && flat != MS_NONE;
             i++)
            *copies += g->in[i] == flat && !g->op_meets[op];
    }
    return bytes;
}

#define RMS                                                                    \
    ", \"norm_type\": \"rms_norm\", \"bias\": false, \"dropout\": 0, "         \
    "\"positions_type\": \"rotary\", \"activation\": \"swiglu\", \"ffn\": 96"

START_TEST(as_much_as_they_are)
{
    static const int layers[] = {1, 3, 16, 40};
    uint32_t n;
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        uint64_t l = (uint64_t)layers[i];
        must_run("", layers[i], MS_MEGATRON, "tensor:4,sp");
        ck_assert_uint_eq(summed(&n), 4 * (6 * l + 2) * HIDDEN);
        ck_assert_uint_eq(n, l + 1); /* a block's copies are one op */
        must_run(RMS, layers[i], MS_MEGATRON, "tensor:4,sp+zero:1,dp=2");
        ck_assert_uint_eq(summed(&n), 4 * (2 * l + 1) * HIDDEN);
        ck_assert_uint_eq(n, l + 1);
        /* Norms of queries and keys, of 8 dimensions a head, are of a rank's
         * heads, sp or not. */
        must_run(RMS ", \"qk_norm\": \"head\"", layers[i], MS_MEGATRON,
                 "tensor:4,sp");
        ck_assert_uint_eq(summed(&n),
                          4 * ((2 * l + 1) * HIDDEN + 2 * l * HIDDEN / 8));
        must_run(RMS ", \"qk_norm\": \"head\"", layers[i], MS_MEGATRON,
                 "tensor:4");
        ck_assert_uint_eq(summed(&n), 4 * 2 * l * HIDDEN / 8);
    }
}
END_TEST

START_TEST(nothing_where_each_has_all)
{
    uint32_t n;
    must_run("", 3, MS_MEGATRON, "tensor:4");
    ck_assert_uint_eq(summed(&n), 0);
    must_run("", 3, MS_MEGATRON, "tensor:1,sp");
    ck_assert_uint_eq(summed(&n), 0);
    must_run("", 3, MS_MEGATRON, "zero:1,dp=4");
    ck_assert_uint_eq(summed(&n), 0);
}
END_TEST

/* Of torch's sums, each in a copy: bytes in backward and in the step. */
static void summed_apart(uint64_t bytes[2], uint32_t n[2])
{
    const ms_graph *g = result.graph;
    memset(bytes, 0, 2 * sizeof *bytes);
    memset(n, 0, 2 * sizeof *n);
    for (uint32_t op = 0; op < g->n_ops; op++) {
        uint32_t in = g->in[g->in_at[op]];
        bool step = op >= g->step_first;
        if (!g->op_meets || !g->op_meets[op] ||
            strcmp(g->storage_name[in], "summed") != 0)
            continue;
        ck_assert_uint_eq(MS_MEETS_GROUP(g->op_meets[op]), MS_GROUP_TENSOR);
        ck_assert_uint_eq(MS_MEETS_COLLECTIVE(g->op_meets[op]), MS_ALL_REDUCE);
        ck_assert_str_eq(g->op_name[g->storage_maker[in]], "aten::clone");
        ck_assert_uint_eq(g->op_read_bytes[op], g->storage_bytes[in]);
        bytes[step] += g->storage_bytes[in];
        n[step]++;
    }
}

static const struct {
    const char *beside;
    int backward, step;
} asked[] = {
    {"", 0, 1},
    {"+microbatch:2", 0, 1},
    {"+pipeline:1", 0, 1},
    {"+checkpoint:full", 0, 1},
    {"+fsdp:dp=2", 1, 0},
    {"+fsdp:dp=1", 1, 0},
    {"+fsdp:dp=4,shard=2", 1, 0},
    {"+fsdp:dp=2+microbatch:2", 1, 0},
    {"+fsdp:dp=2+checkpoint:full", 1, 0},
    {"+context:2+fsdp:dp=4", 1, 0},
    {"+ddp:dp=2", 1, 0},
    {"+zero:1,dp=2", 1, 0},
    {"+zero:2,dp=2", 1, 0},
    {"+zero:3,dp=2", 1, 0},
};

START_TEST(torch_sums_each)
{
    static const int layers[] = {1, 3, 16};
    uint64_t bytes[2];
    uint32_t n[2];
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        uint32_t l = (uint32_t)layers[i], b = (uint32_t)asked[_i].backward;
        uint32_t s = (uint32_t)asked[_i].step;
        uint64_t of_norms = 2 * (2 * l + 1) * HIDDEN;
        uint64_t of_heads = 2 * 2 * l * HIDDEN / 8;
        char policy[96];
        snprintf(policy, sizeof policy, "tensor:4,sp%s", asked[_i].beside);
        /* Norms have two, and no bias of a product is partial. */
        must_run("", layers[i], MS_FLASH, policy);
        summed_apart(bytes, n);
        ck_assert_uint_eq(n[0], b * (4 * l + 2));
        ck_assert_uint_eq(n[1], s * (4 * l + 2));
        ck_assert_uint_eq(bytes[0], b * 2 * of_norms);
        ck_assert_uint_eq(bytes[1], s * 2 * of_norms);
        must_run(RMS ", \"qk_norm\": \"head\"", layers[i], MS_FLASH, policy);
        summed_apart(bytes, n);
        ck_assert_uint_eq(n[0] + n[1], 4 * l + 1);
        ck_assert_uint_eq(bytes[0], b * (of_norms + of_heads));
        ck_assert_uint_eq(bytes[1], s * (of_norms + of_heads));
        laws_check_levels(result.plan, result.line);
        laws_check_rows(result.plan);
        laws_check_clock(result.plan, result.line, result.machine);
        laws_check_report(result.line, result.report, true);
        laws_check_steady(result.plan, true);
        snprintf(policy, sizeof policy, "tensor:4%s", asked[_i].beside);
        must_run(RMS ", \"qk_norm\": \"head\"", layers[i], MS_FLASH, policy);
        summed_apart(bytes, n);
        ck_assert_uint_eq(bytes[0], b * of_heads);
        ck_assert_uint_eq(bytes[1], s * of_heads);
    }
}
END_TEST

/* The calls that sum gradients of one parameter among the ranks that split
 * layers: how many, the bytes of each, and of which micro-batches. */
static uint32_t summed_by_calls(uint64_t *bytes, uint32_t *first_micro_batch)
{
    const ms_program *p = result.program;
    uint32_t n = 0;
    *bytes = 0;
    *first_micro_batch = MS_NONE;
    for (uint32_t i = 0; i < p->n_calls; i++) {
        const ms_call *call = &p->calls[i];
        if (call->verb != MS_REDUCE || call->reduce.group != MS_GROUP_TENSOR)
            continue;
        ck_assert_uint_eq(p->set_at[call->set + 1] - p->set_at[call->set], 1);
        *bytes +=
            result.graph->storage_bytes[p->set_item[p->set_at[call->set]]];
        if (call->micro_batch < *first_micro_batch)
            *first_micro_batch = call->micro_batch;
        n++;
    }
    return n;
}

/* What ranks exchanged in the plan for those calls. */
static uint64_t sent_by_calls(void)
{
    const ms_plan *plan = result.plan;
    uint64_t sent = 0;
    for (uint32_t i = 0; i < plan->n_transfers; i++)
        if (plan->transfers[i].group == MS_GROUP_TENSOR &&
            plan->transfers[i].kind == MS_TRANSFER_OUTER)
            sent += plan->transfers[i].bytes;
    return sent;
}

static const struct {
    const char *policy;
    uint32_t width; /* of what is summed */
} late[] = {
    {"fsdp:dp=2,sync=last", 4},
    {"fsdp:dp=1,sync=last", 4},
    {"fsdp:dp=2,sync=last,reduce=bf16", 2},
    {"fsdp:dp=4,shard=2,sync=last", 4},
    {"fsdp:dp=2,sync=last,copy_in=reduce", 4},
    {"fsdp:dp=2,sync=last,units=whole", 4},
    {"fsdp:dp=2,sync=last,reshard=no+checkpoint:full", 4},
    {"context:2+fsdp:dp=4,sync=last", 4},
};

/* FSDP2's set_requires_gradient_sync(False): partial sums accumulate, and each
 * is summed once behind the last micro-batch, whole, in the format in which it
 * accumulated, however many micro-batches there are. */
START_TEST(late_ones_are_summed_once)
{
    for (uint32_t m = 1; m <= 4; m *= 2) {
        uint64_t bytes, of[2], norms = 2 * 3 + 1;
        uint32_t from, n[2];
        char policy[128];
        snprintf(policy, sizeof policy, "tensor:4,sp+microbatch:%u+%s", m,
                 late[_i].policy);
        must_run(RMS, 3, MS_FLASH, policy);
        summed_apart(of, n);
        uint32_t calls = summed_by_calls(&bytes, &from);
        ck_assert_uint_eq(n[0], m == 1 ? norms : 0);
        ck_assert_uint_eq(n[1], 0);
        ck_assert_uint_eq(calls, m == 1 ? 0 : norms);
        if (m > 1) {
            ck_assert_uint_eq(from, m - 1);
            ck_assert_uint_eq(bytes, norms * late[_i].width * HIDDEN);
            ck_assert_uint_eq(sent_by_calls(), bytes / 4 * 3 * 2);
        }
        laws_check_levels(result.plan, result.line);
        laws_check_rows(result.plan);
        laws_check_clock(result.plan, result.line, result.machine);
        laws_check_report(result.line, result.report, true);
        laws_check_steady(result.plan, true);
    }
}
END_TEST

/* Each stage sums its own behind its last backward; FSDP1 and who has all in
 * each rank do not. */
START_TEST(late_ones_of_stages)
{
    uint64_t bytes;
    uint32_t from;
    must_run(RMS, 4, MS_FLASH, "tensor:4,sp+pipeline:2+microbatch:4+fsdp:dp=2");
    ck_assert_uint_eq(summed_by_calls(&bytes, &from), 2 * 4 + 1);
    ck_assert_uint_eq(from, 3);
    ck_assert_uint_eq(bytes, 4 * (2 * 4 + 1) * HIDDEN);
    laws_check_levels(result.plan, result.line);
    must_run(RMS, 4, MS_FLASH, "tensor:4+microbatch:4+fsdp:dp=2,sync=last");
    ck_assert_uint_eq(summed_by_calls(&bytes, &from), 0);
    must_run(RMS, 4, MS_FLASH,
             "tensor:4,sp+microbatch:4+fsdp:dp=2,impl=1,sync=last");
    ck_assert_uint_eq(summed_by_calls(&bytes, &from), 0);
}
END_TEST

/* Whatever has no other ranks, no part of the tokens or of the heads, or no
 * DTensors. */
START_TEST(torch_sums_nothing_whole)
{
    static const char *const policies[] = {"tensor:4", "tensor:4+fsdp:dp=2",
                                           "tensor:1,sp", "fsdp:dp=4",
                                           "tensor:4,plan=hf"};
    uint64_t bytes[2];
    uint32_t n[2];
    must_run(RMS, 3, MS_FLASH, policies[_i]);
    summed_apart(bytes, n);
    ck_assert_uint_eq(n[0] + n[1], 0);
}
END_TEST

static const char *const beside[] = {"+zero:1,dp=2,impl=megatron",
                                     "+zero:2,dp=2",
                                     "+zero:3,dp=2",
                                     "+microbatch:2+ddp:dp=2",
                                     "+offload:optimizer",
                                     "+context:2+zero:1,dp=4",
                                     "+pipeline:3+zero:1,dp=2",
                                     ",regather=0+checkpoint:full",
                                     ",regather=0+microbatch:2"};

START_TEST(steps_keep_the_laws)
{
    char policy[96];
    snprintf(policy, sizeof policy, "tensor:2,sp%s", beside[_i]);
    must_run("", 3, MS_MEGATRON, policy);
    laws_check_levels(result.plan, result.line);
    if (result.plan->n_ranks > 1)
        return;
    laws_check_rows(result.plan);
    laws_check_clock(result.plan, result.line, result.machine);
    laws_check_report(result.line, result.report, true);
    laws_check_steady(result.plan, true);
}
END_TEST

/* What is saved at the end of forward. */
static uint64_t saved(void)
{
    const ms_graph *g = result.graph;
    uint64_t bytes = 0;
    for (uint32_t s = g->n_persistent; s < g->n_storages; s++)
        if (g->storage_saved_end[s] != MS_NONE)
            bytes += g->storage_bytes[s];
    return bytes;
}

/* nanotron's choice: of T ranks each saves the whole [n, h] of 16 bits for two
 * products a layer and the head, where it saved a part; nothing is gathered
 * again.  As nanotron's 1B has it: 24 x 2 x 16 MiB and 16 for the head. */
START_TEST(what_is_gathered_is_saved)
{
    uint64_t whole = 2 * 4 * 32 * HIDDEN;
    for (int layers = 2; layers <= 24; layers += 22)
        for (int ranks = 2; ranks <= 8; ranks *= 2) {
            char policy[64];
            uint64_t n = 2 * (uint64_t)layers + 1, t = (uint64_t)ranks;
            snprintf(policy, sizeof policy, "tensor:%d,sp", ranks);
            must_run(RMS, layers, MS_MEGATRON, policy);
            uint64_t parts = saved(), again = laws_exchanged(result.plan);
            snprintf(policy, sizeof policy, "tensor:%d,sp,regather=0", ranks);
            must_run(RMS, layers, MS_MEGATRON, policy);
            /* The outputs of norms, parts, are saved by nobody then. */
            ck_assert_uint_eq(saved() - parts, n * whole - n * whole / t);
            ck_assert_uint_eq(again - laws_exchanged(result.plan),
                              n * whole / t * (t - 1));
            snprintf(policy, sizeof policy, "tensor:%d,sp,regather=1", ranks);
            must_run(RMS, layers, MS_MEGATRON, policy);
            ck_assert_uint_eq(saved(), parts);
        }
}
END_TEST

/* A layer of nanotron's kernels (graphs/kernels/nanotron.c): of n, tokens x
 * hidden in 16 bits, nine parts, eight with one sample; four of the MLP's
 * width; fp32 per head and token of the kernel's, and two of norms'; whole two
 * of n, and the kernel's seed and offset. */
START_TEST(a_layer_of_nanotrons)
{
    for (uint32_t b = 1; b <= 4; b += 3)
        for (uint64_t t = 1; t <= 8; t *= 2) {
            char policy[64] = "none";
            const uint64_t tokens = b * 32, n = 2 * tokens * HIDDEN;
            uint64_t parts = (b > 1 ? 9 : 8) * n + 4 * 2 * tokens * 96 +
                             4 * tokens * 8 + 2 * 4 * tokens;
            if (t > 1)
                snprintf(policy, sizeof policy, "tensor:%d,sp,regather=0",
                         (int)t);
            run_batch(RMS, 2, b, MS_NANOTRON, policy);
            uint64_t two = saved();
            run_batch(RMS, 6, b, MS_NANOTRON, policy);
            ck_assert_uint_eq(saved() - two, 4 * (parts / t + 2 * n + 16));
        }
}
END_TEST

static void teardown(void)
{
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}

Suite *suite_wholegrads(void)
{
    Suite *suite = suite_create("wholegrads");
    TCase *tcase = tcase_create("wholegrads");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, as_much_as_they_are);
    tcase_add_test(tcase, nothing_where_each_has_all);
    tcase_add_test(tcase, what_is_gathered_is_saved);
    tcase_add_loop_test(tcase, torch_sums_each, 0,
                        (int)(sizeof asked / sizeof *asked));
    tcase_add_loop_test(tcase, torch_sums_nothing_whole, 0, 5);
    tcase_add_loop_test(tcase, late_ones_are_summed_once, 0,
                        (int)(sizeof late / sizeof *late));
    tcase_add_test(tcase, late_ones_of_stages);
    tcase_add_test(tcase, a_layer_of_nanotrons);
    tcase_add_loop_test(tcase, steps_keep_the_laws, 0,
                        (int)(sizeof beside / sizeof *beside));
    suite_add_tcase(suite, tcase);
    return suite;
}
