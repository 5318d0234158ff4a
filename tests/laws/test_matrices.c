/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Muon where ranks share the states: the momentum is shared, but an update
 * needs a whole matrix. It is gathered on every rank, or one rank owns all of
 * it (Megatron). */
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/names.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "tests/inlined.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"

#include <stdio.h>
#include <string.h>

#define MANY(list) (sizeof(list) / sizeof *(list))
/* Hidden matrices 48 x 64, 64 x 48 (three times); a head of 10 x 64. */
#define MODEL                                                                  \
    "{\"memsim\": 1, \"name\": \"m\", \"input\": {\"shape\": [64]}, "          \
    "\"layers\": [{\"repeat\": 3, \"name\": \"h\", \"layers\": ["              \
    "{\"type\": \"linear\", \"out\": 48}, {\"type\": \"gelu\"}, "              \
    "{\"type\": \"linear\", \"out\": 64}]}, "                                  \
    "{\"type\": \"linear\", \"out\": 10}, {\"type\": \"cross_entropy\"}]}"
#define MATRIX (48u * 64u)
#define MATRICES 6u

static ms_arena keep, trial;
static ms_fault fault;
static ms_result result;

static ms_err run(const char *policy)
{
    ms_job job;
    inlined_begin(&job, &keep, &trial, &fault);
    job.uses = true;
    job.training.batch = 4;
    job.training.optimizer = MS_MUON;
    return inlined_step(MODEL, policy, &job, &keep, &trial, &result, &fault);
}

static void must_run(const char *policy)
{
    ck_assert_msg(run(policy) == MS_OK, "%s: %s", policy, fault.what);
    laws_check_rows(result.plan);
    laws_check_clock(result.plan, result.line, result.machine);
    laws_check_levels(result.plan, result.line);
    laws_check_report(result.line, result.report, true);
    laws_check_steady(result.plan, true);
}

/* Elements of momentum on this rank, in fp32. */
static uint64_t momentum(void)
{
    const ms_graph *graph = result.graph;
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < graph->n_persistent; s++)
        if (strcmp(graph->storage_name[s], "momentum_buffer") == 0)
            bytes += graph->storage_bytes[s];
    return bytes / 4;
}

/* FLOPs of the optimizer's products. */
static double flops(void)
{
    const ms_graph *graph = result.graph;
    double sum = 0;
    for (uint32_t op = graph->step_first; op < graph->n_ops; op++)
        if (graph->op_flags[op] & MS_OP_MATRIX)
            sum += graph->op_flops[op];
    return sum;
}

typedef struct gathers {
    uint32_t n;
    uint64_t bytes, largest;
} gathers;

static gathers gathered(void)
{
    const ms_graph *graph = result.graph;
    gathers all = {0};
    for (uint32_t op = graph->step_first; op < graph->n_ops; op++) {
        uint32_t made = graph->out_at[op];
        if (!(graph->op_flags[op] & MS_OP_GATHERS))
            continue;
        ck_assert_uint_eq(graph->out_at[op + 1], made + 1);
        uint64_t bytes = graph->storage_bytes[graph->out[made]];
        ck_assert_uint_eq(graph->storage_category[graph->out[made]],
                          MS_COMMUNICATION);
        ck_assert_uint_eq(graph->op_stream[op], MS_STREAM_COMM);
        all.n++;
        all.bytes += bytes;
        all.largest = bytes > all.largest ? bytes : all.largest;
    }
    return all;
}

static const struct {
    const char *policy;
    uint32_t ranks; /* that divide a matrix */
} shared[] = {{"zero:1,dp=4", 4},
              {"zero:2,dp=4", 4},
              {"zero:3,dp=4", 4},
              {"zero:2,dp=3+microbatch:2", 3},
              {"fsdp:dp=4", 4},
              {"fsdp:dp=8,shard=4", 4},
              {"fsdp:dp=4+checkpoint:full", 4},
              {"fsdp:dp=4,reshard=no+microbatch:2", 4},
              {"zero:1,dp=1", 1},
              {"fsdp:dp=1", 1}};

/* Momentum is of the rank's part, whole matrices are gathered in bf16, and
 * every rank computes every update: the FLOPs are those of one rank alone. */
START_TEST(parts_are_gathered)
{
    uint32_t ranks = shared[_i].ranks;
    must_run("none");
    double alone = flops();
    ck_assert_uint_eq(momentum(), MATRICES * MATRIX);
    ck_assert_uint_eq(gathered().n, 0);
    /* By hand: of 48 x 64 each of five iterations has X X', A A and B X. */
    ck_assert_double_eq(alone, 5.0 * MATRICES *
                                   (2.0 * 48 * 48 * 64 + 2.0 * 48 * 48 * 48 +
                                    2.0 * 48 * 48 * 64));
    must_run(shared[_i].policy);
    gathers all = gathered();
    ck_assert_uint_eq(momentum(), MATRICES * MATRIX / ranks);
    ck_assert_double_eq(flops(), alone);
    ck_assert_uint_eq(all.n, ranks > 1 ? MATRICES : 0);
    ck_assert_uint_eq(all.bytes, ranks > 1 ? 2 * MATRICES * MATRIX : 0);
    ck_assert_uint_eq(all.largest, ranks > 1 ? 2 * MATRIX : 0);
}
END_TEST

/* The bytes on the link are a ring's share of the matrices. */
START_TEST(gathers_take_their_time)
{
    must_run("zero:1,dp=4");
    const ms_plan *plan = result.plan;
    uint64_t bytes = 0, ns = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_transfers; i++) {
        const ms_plan_op *op = &plan->op[plan->transfers[i].op];
        if (op->of == MS_NONE || op->pass != MS_STEP)
            continue;
        bytes += plan->transfers[i].bytes;
        ck_assert_uint_gt(op->ns, 0);
        ns += op->ns;
        ck_assert_uint_eq(plan->row[op->alloc_at].home, MS_HOME_COMPUTE);
        n++;
    }
    ck_assert_uint_ge(result.report->ranks[0].time.exposed_comm_ns, ns);
    ck_assert_uint_eq(n, MATRICES);
    ck_assert_uint_eq(bytes, 2 * MATRICES * MATRIX * 3 / 4);
}
END_TEST

/* Six equal matrices on several ranks: the busiest rank has its share, rounded
 * up, and computes no other updates. */
START_TEST(matrices_are_dealt)
{
    char policy[64];
    uint32_t ranks = (uint32_t)_i + 1;
    uint32_t mine = (MATRICES + ranks - 1) / ranks;
    must_run("none");
    double alone = flops();
    snprintf(policy, sizeof policy, "zero:1,dp=%u,impl=megatron", ranks);
    must_run(policy);
    ck_assert_uint_eq(momentum(), mine * MATRIX);
    ck_assert_uint_eq(gathered().n, 0);
    ck_assert_double_eq(flops(), alone * mine / MATRICES);
}
END_TEST

/* DeepSpeed's stages 1 and 2: each rank computes the updates of as many
 * matrices as its part of the flat buffer holds, with all of their gradients;
 * its momentum has the gradients' 16 bits; only the new weights are gathered.
 */
START_TEST(flat_steps_find_updates_before)
{
    char policy[96];
    uint32_t stage = (uint32_t)_i % 2 + 1, ranks = (uint32_t)_i / 2 + 1;
    must_run("none");
    double one = flops() / MATRICES;
    snprintf(policy, sizeof policy,
             "zero:%u,dp=%u,impl=deepspeed,reduce_scatter=0", stage, ranks);
    ck_assert_msg(run(policy) == MS_OK, "%s: %s", policy, fault.what);
    laws_check_rows(result.plan);
    laws_check_clock(result.plan, result.line, result.machine);
    laws_check_levels(result.plan, result.line);
    laws_check_steady(result.plan, false);
    double mine = (double)(2 * momentum()) / MATRIX, found = flops() / one;
    ck_assert_double_ge(found + 1e-9, mine);
    ck_assert_double_lt(found, mine + 1);
    ck_assert_double_ge(mine * ranks + 1e-9, MATRICES - 0.01 * ranks);
    ck_assert_double_le(mine * ranks, MATRICES + 0.01 * ranks);
    ck_assert_uint_eq(gathered().n, 0);
}
END_TEST

static const struct {
    const char *policy, *why;
} deepspeeds[] = {
    {"zero:2,dp=4,impl=deepspeed", "reduce_scatter"},
    {"zero:3,dp=4,impl=deepspeed,reduce_scatter=0", "stage 3"},
    {"zero:1,dp=4,impl=deepspeed", "reduce_scatter"},
};

START_TEST(deepspeed_needs_whole_gradients)
{
    ck_assert_int_eq(run(deepspeeds[_i].policy), MS_EUSAGE);
    ck_assert_ptr_nonnull(strstr(fault.what, deepspeeds[_i].why));
    ck_assert_uint_gt(strlen(fault.hint), 0);
}
END_TEST

/* What is refused comes with a reason. */
START_TEST(no_matrix_no_update)
{
    ck_assert_int_eq(run("fsdp:impl=1,dp=4"), MS_EUSAGE);
    ck_assert_ptr_nonnull(strstr(fault.what, "flat parameters"));
    ck_assert_int_eq(run("offload:optimizer"), MS_EUSAGE);
    ck_assert_ptr_nonnull(strstr(fault.what, "no update on the host"));
}
END_TEST

static void teardown(void)
{
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}

Suite *suite_matrices(void)
{
    Suite *suite = suite_create("matrices");
    TCase *tcase = tcase_create("matrices");
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_loop_test(tcase, parts_are_gathered, 0, (int)MANY(shared));
    tcase_add_test(tcase, gathers_take_their_time);
    tcase_add_loop_test(tcase, matrices_are_dealt, 0, 8);
    tcase_add_loop_test(tcase, flat_steps_find_updates_before, 0, 12);
    tcase_add_loop_test(tcase, deepspeed_needs_whole_gradients, 0,
                        (int)MANY(deepspeeds));
    tcase_add_test(tcase, no_matrix_no_update);
    suite_add_tcase(suite, tcase);
    return suite;
}
