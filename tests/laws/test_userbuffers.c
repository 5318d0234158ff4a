/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Exchanges in pieces beside those of products (tensor:T,sp,overlap): the same
 * work and traffic as without, in less time: Megatron's in 12 buffers outside
 * the pool, torch's through one workspace. */
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

static void must_run(const char *model, uint32_t kernels, const char *policy)
{
    ck_assert_msg(run(model, 4, kernels, policy) == MS_OK, "%s: %s", policy,
                  fault.what);
}

typedef struct sums {
    double flops;
    uint64_t bytes, step_ns, exposed_ns, buffers;
} sums;

/* FLOPs of products alone: sums of what was scattered are kernels, too. */
static sums sums_of(const char *model, uint32_t kernels, const char *policy)
{
    sums all = {0};
    must_run(model, kernels, policy);
    const ms_graph *g = result.graph;
    for (uint32_t op = 0; op < g->step_first; op++)
        all.flops += g->op_flags[op] & MS_OP_MATRIX ? g->op_flops[op] : 0;
    all.bytes = laws_exchanged(result.plan);
    all.step_ns = result.line->step_ns;
    all.exposed_ns = result.report->ranks[0].time.exposed_comm_ns;
    all.buffers = g->userbuffer_bytes;
    return all;
}

START_TEST(one_rank_is_none)
{
    uint32_t kernels = _i == 0 ? MS_MEGATRON : MS_FLASH;
    must_run(gpt, kernels, "none");
    char *without = inlined_graph_text(&result, &trial);
    must_run(gpt, kernels, "tensor:1,sp,overlap");
    char *with = inlined_graph_text(&result, &trial);
    ck_assert_str_eq(without, with);
    free(without);
    free(with);
}
END_TEST

/* Of buffers outside the pool: 12 of all tokens; or the largest exchange, two
 * parts of a sum, with signals, in pages of 2 MiB. */
static uint64_t buffers_of(uint32_t kernels, uint64_t ranks)
{
    uint64_t page = UINT64_C(2) << 20, whole = 2 * 4 * SEQUENCE * HIDDEN;
    if (kernels == MS_MEGATRON)
        return 12 * whole;
    return (2 * whole / ranks + 2048 + page - 1) / page * page;
}

static const uint32_t sets[] = {MS_MEGATRON, MS_FLASH, MS_FUSED};

START_TEST(work_and_traffic_are_the_same)
{
    static const char *const models[] = {gpt, llama};
    static const int ranks[] = {2, 4, 8};
    uint32_t kernels = sets[_i];
    for (size_t m = 0; m < MANY(models); m++)
        for (size_t r = 0; r < MANY(ranks); r++) {
            char policy[32];
            snprintf(policy, sizeof policy, "tensor:%d,sp", ranks[r]);
            sums without = sums_of(models[m], kernels, policy);
            ck_assert_uint_eq(without.buffers, 0);
            snprintf(policy, sizeof policy, "tensor:%d,sp,overlap", ranks[r]);
            sums with = sums_of(models[m], kernels, policy);
            ck_assert_double_eq_tol(with.flops / without.flops, 1, 1e-9);
            /* A piece more or less is rounded to bytes. */
            ck_assert_uint_le(with.bytes, without.bytes);
            ck_assert_uint_ge(with.bytes + 64, without.bytes);
            if (models[m] == gpt)
                continue;
            ck_assert_uint_lt(with.step_ns, without.step_ns);
            ck_assert_uint_lt((kernels == MS_MEGATRON ? 2 : 1) *
                                  with.exposed_ns,
                              without.exposed_ns);
            ck_assert_uint_eq(with.buffers,
                              buffers_of(kernels, (uint64_t)ranks[r]));
        }
}
END_TEST

/* ---- torch's ------------------------------------------------------------- */

static uint32_t count(const char *name, bool forward)
{
    const ms_graph *g = result.graph;
    uint32_t n = 0;
    for (uint32_t op = 0; op < g->step_first; op++)
        n += strcmp(g->op_name[op], name) == 0 &&
             ms_graph_is_forward(g, op) == forward;
    return n;
}

/* Of L layers what is read by attention, the MLP and the head comes so, and
 * what both make goes so; backward gathers the gradients of both, but scatters
 * only the head's: the others are sums of several products' (torch/_inductor/
 * fx_passes/micro_pipeline_tp.py). */
START_TEST(what_goes_in_pieces)
{
    must_run(llama, MS_FLASH, "tensor:4,sp,overlap");
    ck_assert_uint_eq(count("symm_mem::all_gather", true), 2 * 4 + 1);
    ck_assert_uint_eq(count("symm_mem::reduce_scatter", true), 2 * 4);
    ck_assert_uint_eq(count("symm_mem::all_gather", false), 2 * 4);
    ck_assert_uint_eq(count("symm_mem::reduce_scatter", false), 1);
    ck_assert_uint_eq(count("nccl::reduce_scatter", false), 2 * 4);
    /* Products that add a bias are no aten::mm; their gradients are, and one
     * reads each gradient of an input. */
    must_run(gpt, MS_FLASH, "tensor:4,sp,overlap");
    ck_assert_uint_eq(count("symm_mem::all_gather", true), 1); /* the head */
    ck_assert_uint_eq(count("symm_mem::reduce_scatter", true), 0);
    ck_assert_uint_eq(count("symm_mem::all_gather", false), 2 * 3);
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
    must_run(llama, MS_MEGATRON, "tensor:8,sp,overlap");
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

/* Of g ns for a piece of the products and s for what comes: (T - 1) pieces of
 * gate and up wait for nothing, the last of up for all that came. */
START_TEST(a_gather_by_hand)
{
    uint64_t copied_ns, gate_ns, up_ns, rest_ns, came_ns, end_ns, at_ns;
    must_run(llama, MS_FUSED, "tensor:4,sp,overlap");
    op_ns("layers.1.mlp.gate", "aten::copy_", 0, &at_ns, &copied_ns);
    uint64_t g = op_ns("layers.1.mlp.gate", "aten::mm", 0, &gate_ns, &end_ns);
    ck_assert_uint_eq(gate_ns, copied_ns); /* its own part is there */
    uint64_t u = op_ns("layers.1.mlp.up", "aten::mm", 0, &up_ns, &at_ns);
    ck_assert_uint_eq(up_ns, end_ns);
    uint64_t r = op_ns("layers.1.mlp.up", "aten::mm", 1, &rest_ns, &end_ns);
    op_ns("layers.1.mlp.gate", "symm_mem::all_gather", 0, &copied_ns, &came_ns);
    ck_assert_uint_eq(rest_ns, at_ns > came_ns ? at_ns : came_ns);
    /* 4 pieces of the gate's, 2 and 2 of up's. */
    ck_assert_uint_le(u > r ? u - r : r - u, 1);
    ck_assert_uint_le(g, u + r + g / 100);
    ck_assert_uint_ge(g + g / 100, u + r);
}
END_TEST

/* A sum's first piece is multiplied, then goes beside the rest; all are added
 * up where both are there. */
START_TEST(a_scatter_by_hand)
{
    uint64_t first_ns, rest_ns, sent_ns, at_ns, end_ns, sum_ns;
    must_run(llama, MS_FUSED, "tensor:4,sp,overlap");
    op_ns("layers.1.mlp.down", "aten::mm", 0, &at_ns, &first_ns);
    op_ns("layers.1.mlp.down", "aten::mm", 1, &rest_ns, &end_ns);
    ck_assert_uint_eq(rest_ns, first_ns);
    op_ns("layers.1.mlp.down", "symm_mem::reduce_scatter", 0, &at_ns, &sent_ns);
    ck_assert_uint_eq(at_ns, first_ns);
    op_ns("layers.1.mlp.down", "aten::sum", 0, &sum_ns, &at_ns);
    ck_assert_uint_eq(sum_ns, sent_ns > end_ns ? sent_ns : end_ns);
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
    snprintf(policy, sizeof policy, "tensor:2,sp,overlap%s",
             beside[(size_t)_i / MANY(sets)]);
    must_run(gpt, sets[(size_t)_i % MANY(sets)], policy);
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
    ck_assert_int_eq(run(gpt, 4, MS_FLASH, "tensor:2,sp,overlap"), MS_OK);
    ck_assert_int_eq(run(gpt, 4, MS_MEGATRON, "tensor:2,sp,overlap,regather=0"),
                     MS_EUSAGE);
    ck_assert_str_eq(fault.hint, "leave one of the two out");
    ck_assert_int_eq(run(gpt, 4, MS_FLASH, "tensor:2,sp,overlap,regather=0"),
                     MS_OK);
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
    tcase_add_loop_test(tcase, one_rank_is_none, 0, 2);
    tcase_add_loop_test(tcase, work_and_traffic_are_the_same, 0,
                        (int)MANY(sets));
    tcase_add_test(tcase, a_pipeline_by_hand);
    tcase_add_test(tcase, what_goes_in_pieces);
    tcase_add_test(tcase, a_gather_by_hand);
    tcase_add_test(tcase, a_scatter_by_hand);
    tcase_add_loop_test(tcase, steps_keep_the_laws, 0,
                        (int)(MANY(beside) * MANY(sets)));
    tcase_add_test(tcase, what_is_refused);
    suite_add_tcase(suite, tcase);
    return suite;
}
