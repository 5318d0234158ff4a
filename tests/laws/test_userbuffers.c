/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Exchanges in pieces beside those of products (tensor:T,sp,overlap): the same
 * work and traffic as without, in less time, in 12 buffers outside the pool. */
#include "graphs/kernels/kernels.h"
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/inlined.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANY(list) (sizeof(list) / sizeof *(list))
#define HIDDEN UINT64_C(4096)
#define SEQUENCE UINT64_C(4096)

static const char gpt[] =
    "{\"memsim\": 1, \"name\": \"m\", \"family\": \"decoder\", \"config\": "
    "{\"layers\": 3, \"hidden\": 64, \"heads\": 8, \"vocab\": 512, "
    "\"positions\": 64}}";
static const char llama[] =
    "{\"memsim\": 1, \"name\": \"m\", \"family\": \"decoder\", \"config\": "
    "{\"layers\": 4, \"hidden\": 4096, \"heads\": 32, \"kv_heads\": 8, "
    "\"vocab\": 4096, \"positions\": 4096, \"norm_type\": \"rms_norm\", "
    "\"dropout\": 0, \"positions_type\": \"rotary\", \"activation\": "
    "\"swiglu\", \"bias\": false, \"tied\": false, \"ffn\": 14336}}";

static ms_arena keep, trial;
static ms_fault fault;
static ms_result result;

static ms_err run(const char *model, uint64_t batch, uint32_t kernels,
                  const char *policy)
{
    ms_job job;
    inlined_begin(&job, &keep, &trial, &fault);
    job.uses = true;
    job.training.batch = (int64_t)batch;
    job.training.kernels = (int64_t)kernels;
    job.training.sequence = model == llama ? (int64_t)SEQUENCE : 64;
    return inlined_step(model, policy, &job, &keep, &trial, &result, &fault);
}

static void must_run(const char *model, const char *policy)
{
    ck_assert_msg(run(model, 4, MS_MEGATRON, policy) == MS_OK, "%s: %s", policy,
                  fault.what);
}

typedef struct sums {
    double flops;
    uint64_t bytes, step_ns, exposed_ns, buffers;
} sums;

static sums sums_of(const char *model, const char *policy)
{
    sums all = {0};
    must_run(model, policy);
    const ms_graph *g = result.graph;
    for (uint32_t op = 0; op < g->step_first; op++)
        all.flops += g->op_flops[op];
    for (uint32_t i = 0; i < result.plan->n_transfers; i++)
        if (result.plan->transfers[i].kind == MS_TRANSFER_MEETING)
            all.bytes += result.plan->transfers[i].bytes;
    all.step_ns = result.line->step_ns;
    all.exposed_ns = result.report->ranks[0].time.exposed_comm_ns;
    all.buffers = g->userbuffer_bytes;
    return all;
}

START_TEST(one_rank_is_none)
{
    must_run(gpt, "none");
    char *without = inlined_graph_text(&result, &trial);
    must_run(gpt, "tensor:1,sp,overlap");
    char *with = inlined_graph_text(&result, &trial);
    ck_assert_str_eq(without, with);
    free(without);
    free(with);
}
END_TEST

START_TEST(work_and_traffic_are_the_same)
{
    static const char *const models[] = {gpt, llama};
    static const int ranks[] = {2, 4, 8};
    for (size_t m = 0; m < MANY(models); m++)
        for (size_t r = 0; r < MANY(ranks); r++) {
            char policy[32];
            snprintf(policy, sizeof policy, "tensor:%d,sp", ranks[r]);
            sums without = sums_of(models[m], policy);
            ck_assert_uint_eq(without.buffers, 0);
            snprintf(policy, sizeof policy, "tensor:%d,sp,overlap", ranks[r]);
            sums with = sums_of(models[m], policy);
            ck_assert_double_eq_tol(with.flops / without.flops, 1, 1e-9);
            /* A piece more or less is rounded to bytes. */
            ck_assert_uint_le(with.bytes, without.bytes);
            ck_assert_uint_ge(with.bytes + 64, without.bytes);
            if (models[m] == gpt)
                continue;
            ck_assert_uint_lt(with.step_ns, without.step_ns);
            ck_assert_uint_lt(2 * with.exposed_ns, without.exposed_ns);
            ck_assert_uint_eq(with.buffers, 12 * 2 * 4 * SEQUENCE * HIDDEN);
        }
}
END_TEST

/* By hand: how long the ops from a unit's gather on take, where nothing else
 * runs.  Of g ns a piece's product and s its exchange. */
static uint64_t op_ns(const char *layer, const char *name, uint32_t which,
                      uint64_t *start_ns, uint64_t *end_ns)
{
    const ms_plan *plan = result.plan;
    const ms_graph *g = result.graph;
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        uint32_t of = plan->op[op].of;
        if (of == MS_NONE || g->op_pass[of] != MS_FORWARD ||
            strcmp(g->op_name[of], name) != 0 ||
            g->op_layer[of] >= g->n_layers ||
            strcmp(g->layer_name[g->op_layer[of]], layer) != 0 || which-- > 0)
            continue;
        *start_ns = result.line->start_ns[op];
        *end_ns = result.line->end_ns[op];
        return g->op_ns[of];
    }
    ck_abort_msg("no %s of %s", name, layer);
    return 0;
}

START_TEST(a_pipeline_by_hand)
{
    uint64_t start_ns, end_ns, at_ns, last_ns;
    must_run(llama, "tensor:8,sp,overlap");
    uint64_t g = op_ns("layers.1.mlp.down", "aten::mm", 0, &start_ns, &at_ns);
    uint64_t g3 = op_ns("layers.1.mlp.down", "aten::mm", 1, &at_ns, &end_ns);
    uint64_t s3 =
        op_ns("layers.1.mlp.down", "nccl::reduce_scatter", 0, &at_ns, &end_ns);
    ck_assert_uint_eq(at_ns, start_ns + g); /* when its first piece is there */
    uint64_t s =
        op_ns("layers.1.mlp.down", "nccl::reduce_scatter", 1, &at_ns, &last_ns);
    uint64_t most = g3 > s3 ? g3 : s3;
    ck_assert_uint_ge(last_ns, start_ns + g + most + s);
    /* What runs side by side slows each other: never more than in turns. */
    ck_assert_uint_le(last_ns, start_ns + g + g3 + s3 + s);
    ck_assert_uint_ge(3 * g, g3); /* three pieces are one kernel's waves */
}
END_TEST

static const char *const beside[] = {"",
                                     "+checkpoint:full",
                                     "+checkpoint:selective",
                                     "+microbatch:2+zero:1,dp=2,impl=megatron",
                                     "+context:2+zero:1,dp=4",
                                     "+swap:te=1",
                                     "+pipeline:3+microbatch:2",
                                     "+ddp:dp=2",
                                     "+fsdp:dp=2"};

START_TEST(steps_keep_the_laws)
{
    char policy[96];
    snprintf(policy, sizeof policy, "tensor:2,sp,overlap%s", beside[_i]);
    must_run(gpt, policy);
    laws_check_levels(result.plan, result.line);
    if (result.plan->n_ranks > 1)
        return;
    laws_check_rows(result.plan);
    laws_check_clock(result.plan, result.line, result.machine);
    laws_check_report(result.line, result.report, true);
    laws_check_steady(result.plan, true);
}
END_TEST

START_TEST(what_is_refused)
{
    ck_assert_int_eq(run(gpt, 4, MS_MEGATRON, "tensor:2,overlap"), MS_EUSAGE);
    ck_assert_str_eq(fault.hint, "add sp");
    ck_assert_int_eq(run(gpt, 4, MS_FLASH, "tensor:2,sp,overlap"), MS_EUSAGE);
    ck_assert_str_eq(fault.hint, "--kernels megatron, or leave overlap out");
    ck_assert_int_eq(run(llama, 4, MS_MEGATRON, "tensor:8,sp,overlap"), MS_OK);
}
END_TEST

static void teardown(void)
{
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}

Suite *suite_userbuffers(void)
{
    Suite *suite = suite_create("userbuffers");
    TCase *tcase = tcase_create("userbuffers");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, one_rank_is_none);
    tcase_add_test(tcase, work_and_traffic_are_the_same);
    tcase_add_test(tcase, a_pipeline_by_hand);
    tcase_add_loop_test(tcase, steps_keep_the_laws, 0, (int)MANY(beside));
    tcase_add_test(tcase, what_is_refused);
    suite_add_tcase(suite, tcase);
    return suite;
}
