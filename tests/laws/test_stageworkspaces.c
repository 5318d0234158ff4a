/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Workspaces of matrix products in a pipeline (graphs/autograd.md 16): each
 * rank makes its own, once, in its first step, and has them from the start of
 * later ones; a rank that multiplies nothing has none. */
#include "graphs/kernels/kernels.h"
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/inlined.h"
#include "tests/tests.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MANY(list) (sizeof(list) / sizeof *(list))
#define MIB (UINT64_C(1) << 20)
#define CUBLAS (32 * MIB)    /* of a thread, sm_90 */
#define TE (32 * MIB + 1024) /* Transformer Engine's */
#define MICRO_BATCHES 8

static const char model[] =
    "{\"memsim\": 1, \"name\": \"m\", \"family\": \"decoder\", \"config\": "
    "{\"layers\": 8, \"hidden\": 64, \"heads\": 8, \"vocab\": 512, "
    "\"positions\": 32, \"tied\": false}}";

static const char *const orders[] = {
    "pipeline:2",
    "pipeline:4,schedule=gpipe",
    "pipeline:2,schedule=interleaved,chunks=2",
    "pipeline:4,schedule=zb-h1",
    "pipeline:2,schedule=zb-v",
    "pipeline:2,schedule=dualpipev",
    "pipeline:2,schedule=looped-bfs,chunks=4",
};
static const char *const besides[] = {"", "+checkpoint:full",
                                      "+checkpoint:selective", "+tensor:2",
                                      "+zero:1,dp=2"};

static ms_arena keep, trial;
static ms_fault fault;
static ms_result result;

static void run(const char *policy, int64_t kernels, bool first)
{
    ms_job job;
    inlined_begin(&job, &keep, &trial, &fault);
    job.training.batch = MICRO_BATCHES;
    job.training.kernels = kernels;
    job.training.step = first;
    ck_assert_msg(inlined_step(model, policy, &job, &keep, &trial, &result,
                               &fault) == MS_OK,
                  "%s: %s: %s", policy, fault.what, fault.hint);
}

/* Bytes of workspaces that last, which the rank makes or begins with. */
static uint64_t lasting(uint16_t rank)
{
    const ms_plan *plan = result.plan;
    uint64_t bytes = 0;
    for (uint32_t r = 0; r < plan->n_rows; r++) {
        const ms_row *row = &plan->row[r];
        if (plan->op[row->op].rank == rank &&
            row->storage < result.graph->n_persistent &&
            result.graph->storage_category[row->storage] == MS_WORKSPACE)
            bytes += row->bytes;
    }
    return bytes;
}

static void check(const char *policy, int64_t kernels, bool first,
                  uint64_t inner, uint64_t last)
{
    run(policy, kernels, first);
    uint16_t n = result.report->n_ranks;
    for (uint16_t rank = 0; rank < n; rank++) {
        uint64_t bytes = rank + 1 < n ? inner : last;
        ck_assert_msg(lasting(rank) == bytes,
                      "%s, %s step, rank %u: %" PRIu64 " bytes, not %" PRIu64,
                      policy, first ? "first" : "later", rank, lasting(rank),
                      bytes);
    }
}

static void check_both(const char *policy, int64_t kernels, uint64_t inner,
                       uint64_t last)
{
    check(policy, kernels, false, inner, last);
    check(policy, kernels, true, inner, last);
}

/* torch: two threads with products and one of them with a bias.  Megatron's
 * own are Transformer Engine's; the head's is torch's, and where attention is
 * not, its rank alone has cuBLAS's. */
START_TEST(each_rank_makes_its_own)
{
    char policy[160];
    for (size_t o = 0; o < MANY(orders); o++)
        for (size_t b = 0; b < MANY(besides); b++) {
            snprintf(policy, sizeof policy, "microbatch:%d+%s%s", MICRO_BATCHES,
                     orders[o], besides[b]);
            bool folds = strstr(orders[o], "-v") || strstr(orders[o], "pev");
            uint64_t head = folds ? 0 : 2 * CUBLAS;
            check_both(policy, MS_FLASH, 2 * CUBLAS + MIB, 2 * CUBLAS + MIB);
            if (!folds)
                check_both(policy, MS_MEGATRON, TE, TE + head);
        }
}
END_TEST

START_TEST(an_empty_stage_has_none)
{
    const char policy[] = "microbatch:8+pipeline:3,layers=Etttt||ttttL";
    for (int first = 0; first < 2; first++) {
        run(policy, MS_FLASH, first);
        ck_assert_uint_eq(lasting(0), 2 * CUBLAS + MIB);
        ck_assert_uint_eq(lasting(1), 0);
        ck_assert_uint_eq(lasting(2), 2 * CUBLAS + MIB);
    }
}
END_TEST

/* Peaks of a first step have them all once a backward has run: those of later
 * steps but for the moments. */
START_TEST(a_first_step_peaks_with_them)
{
    const char policy[] = "microbatch:8+pipeline:4";
    uint64_t first[4];
    run(policy, MS_MEGATRON, true);
    for (uint16_t rank = 0; rank < 4; rank++)
        first[rank] = result.report->ranks[rank].category_peaks[MS_WORKSPACE];
    run(policy, MS_MEGATRON, false);
    for (uint16_t rank = 0; rank < 4; rank++)
        ck_assert_uint_eq(
            first[rank],
            result.report->ranks[rank].category_peaks[MS_WORKSPACE]);
}
END_TEST

Suite *suite_stageworkspaces(void)
{
    Suite *suite = suite_create("stageworkspaces");
    TCase *tcase = tcase_create("stageworkspaces");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, each_rank_makes_its_own);
    tcase_add_test(tcase, an_empty_stage_has_none);
    tcase_add_test(tcase, a_first_step_peaks_with_them);
    suite_add_tcase(suite, tcase);
    return suite;
}
