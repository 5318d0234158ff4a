/* SPDX-License-Identifier: GPL-3.0-or-later */
/* T5's attention with its bias by distance, split by heads (tensor:T): each
 * rank has its heads of the products, of scores and of the bias, whose table
 * all have whole. */
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
#define HEADS UINT64_C(8)
#define DIM UINT64_C(8)
#define HIDDEN UINT64_C(64)
#define SEQUENCE UINT64_C(32)
#define BUCKETS UINT64_C(32)

static const char t5[] =
    "{\"model_type\": \"t5\", \"vocab_size\": 512, \"d_model\": 64, "
    "\"d_kv\": 8, \"d_ff\": 128, \"num_layers\": 2, \"num_decoder_layers\": 2, "
    "\"num_heads\": 8, \"dropout_rate\": 0.0}";

static ms_arena keep, trial;
static ms_fault fault;
static ms_result result;

static ms_err run(uint32_t kernels, const char *policy)
{
    ms_job job;
    inlined_begin(&job, &keep, &trial, &fault);
    job.uses = true;
    job.training.batch = 4;
    job.training.kernels = (int64_t)kernels;
    job.training.sequence = (int64_t)SEQUENCE;
    return inlined_step(t5, policy, &job, &keep, &trial, &result, &fault);
}

static void must_run(uint32_t kernels, const char *policy)
{
    ck_assert_msg(run(kernels, policy) == MS_OK, "%s: %s: %s", policy,
                  fault.what, fault.hint);
}

/* Bytes of 16-bit parameters of attention, and of tables of distances. */
static uint64_t weights(const char *type)
{
    const ms_graph *g = result.graph;
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < g->n_persistent; s++)
        if (g->storage_category[s] == MS_PARAMETERS &&
            g->storage_layer[s] < g->n_layers &&
            strcmp(g->layer_type[g->storage_layer[s]], type) == 0 &&
            strstr(g->storage_name[s], "weight") != NULL)
            bytes += g->storage_bytes[s];
    return bytes;
}

/* FLOPs of products in forward's layers of attention. */
static double attended(void)
{
    const ms_graph *g = result.graph;
    double flops = 0;
    for (uint32_t op = 0; op < g->step_first; op++)
        if (g->op_pass[op] == MS_FORWARD && (g->op_flags[op] & MS_OP_MATRIX) &&
            g->op_layer[op] < g->n_layers &&
            strcmp(g->layer_type[g->op_layer[op]], "relative_attention") == 0)
            flops += g->op_flops[op];
    return flops;
}

static const uint32_t sets[] = {MS_FLASH, MS_EAGER, MS_MEGATRON};

/* Three attentions of 4 products in 2 + 2 layers, 2 tables. */
START_TEST(each_rank_has_its_heads)
{
    static const char *const ways[] = {"", ",sp"};
    uint32_t kernels = sets[_i];
    must_run(kernels, "none");
    double flops = attended();
    uint64_t bytes = weights("relative_attention");
    ck_assert_uint_eq(bytes, 2 * 6 * 4 * HIDDEN * HEADS * DIM);
    ck_assert_uint_eq(weights("relative_bias"), 2 * 2 * BUCKETS * HEADS);
    for (uint64_t ranks = 2; ranks <= HEADS; ranks *= 2)
        for (size_t w = 0; w < MANY(ways); w++) {
            char policy[32];
            snprintf(policy, sizeof policy, "tensor:%llu%s",
                     (unsigned long long)ranks, ways[w]);
            must_run(kernels, policy);
            ck_assert_uint_eq(weights("relative_attention"), bytes / ranks);
            ck_assert_uint_eq(weights("relative_bias"),
                              2 * 2 * BUCKETS * HEADS);
            ck_assert_double_eq_tol(attended() * (double)ranks / flops, 1,
                                    1e-9);
        }
}
END_TEST

START_TEST(one_rank_is_none)
{
    must_run(sets[_i], "none");
    char *without = inlined_graph_text(&result, &trial);
    must_run(sets[_i], "tensor:1,sp");
    char *with = inlined_graph_text(&result, &trial);
    ck_assert_str_eq(without, with);
    free(without);
    free(with);
}
END_TEST

static const char *const beside[] = {"",
                                     ",sp",
                                     ",sp,overlap",
                                     "+checkpoint:full",
                                     ",sp+checkpoint:full",
                                     ",sp+microbatch:2+zero:1,dp=2",
                                     "+ddp:dp=2",
                                     ",sp+fsdp:dp=2",
                                     ",sp+zero:3,dp=2",
                                     "+offload:optimizer"};

START_TEST(steps_keep_the_laws)
{
    char policy[96];
    snprintf(policy, sizeof policy, "tensor:2%s",
             beside[(size_t)_i / MANY(sets)]);
    must_run(sets[(size_t)_i % MANY(sets)], policy);
    laws_check_levels(result.plan, result.line);
    laws_check_rows(result.plan);
    laws_check_clock(result.plan, result.line, result.machine);
    laws_check_report(result.line, result.report, true);
    laws_check_steady(result.plan, true);
}
END_TEST

START_TEST(heads_must_divide)
{
    ck_assert_int_eq(run(MS_FLASH, "tensor:3"), MS_EINPUT);
    ck_assert_ptr_nonnull(strstr(fault.what, "8 heads"));
    ck_assert_str_eq(fault.hint, "tensor:2 and tensor:4 would");
}
END_TEST

static void teardown(void)
{
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}

Suite *suite_headbias(void)
{
    Suite *suite = suite_create("headbias");
    TCase *tcase = tcase_create("headbias");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_loop_test(tcase, each_rank_has_its_heads, 0, (int)MANY(sets));
    tcase_add_loop_test(tcase, one_rank_is_none, 0, (int)MANY(sets));
    tcase_add_loop_test(tcase, steps_keep_the_laws, 0,
                        (int)(MANY(beside) * MANY(sets)));
    tcase_add_test(tcase, heads_must_divide);
    suite_add_tcase(suite, tcase);
    return suite;
}
