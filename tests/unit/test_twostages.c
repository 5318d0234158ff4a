/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stages by hand.  Two units with a weight each (100 and 300 bytes) that read
 * the same input x and a tied weight of 8 bytes; one fused step over both
 * weights and their moments takes 40 ns.
 *
 *     rank 0: unit 0   x 10, tied 8, w0 100, m0 100   step: 300 of 1200
 *     rank 1: unit 1   x 10, tied 8, w1 300, m1 300   step: 900 of 1200
 */
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"

#include <string.h>

enum { X, TIED, W0, G0, M0, W1, G1, M1, N_PERSISTENT };

static ms_arena arena;
static ms_fault fault;
static ms_graph graph;

/* Unit u reads x, the tied weight and w; backward makes the gradient of w. */
static void build(void)
{
    static const uint64_t bytes[N_PERSISTENT] = {10,  8,   100, 100,
                                                 100, 300, 300, 300};
    static const uint8_t category[N_PERSISTENT] = {
        MS_INPUTS,          MS_PARAMETERS, MS_PARAMETERS, MS_GRADIENTS,
        MS_OPTIMIZER_STATE, MS_PARAMETERS, MS_GRADIENTS,  MS_OPTIMIZER_STATE};
    laws_builder b;
    uint32_t out[2], buffer[2];
    arena = (ms_arena){0};
    fault = (ms_fault){0};
    laws_build_open(&b, &graph, &arena, 32, 16, 2);
    for (uint32_t s = 0; s < N_PERSISTENT; s++)
        laws_build_storage(&b, bytes[s], category[s],
                           category[s] != MS_GRADIENTS);
    graph.storage_grad[W0] = G0;
    graph.storage_grad[W1] = G1;
    graph.n_persistent = N_PERSISTENT;
    graph.loss_unit = 1;
    for (uint32_t u = 0; u < 2; u++) {
        graph.forward_at[u] = graph.n_ops;
        out[u] = laws_build_storage(&b, 16, MS_TEMPORARIES, false);
        laws_build_op(&b, u ? MS_LOSS : MS_FORWARD, u, 5,
                      (uint32_t[]){X, TIED, u ? W1 : W0}, 3, &out[u], 1);
    }
    graph.forward_at[2] = graph.backward_at[2] = graph.n_ops;
    for (uint32_t u = 2; u-- > 0;) {
        uint32_t grad = u ? G1 : G0;
        buffer[u] = laws_build_storage(&b, bytes[grad], MS_TEMPORARIES, false);
        laws_build_op(&b, MS_GRAD_WEIGHT, u, 7, (uint32_t[]){X}, 1, &buffer[u],
                      1);
        uint32_t op =
            laws_build_op(&b, MS_ACCUMULATE, u, 1, &buffer[u], 1, &grad, 1);
        graph.op_flags[op] |= MS_OP_CLONES;
        graph.backward_at[u] = graph.n_ops;
    }
    graph.step_first = graph.n_ops;
    laws_build_op(&b, MS_STEP, MS_NONE, 40,
                  (uint32_t[]){W0, G0, M0, W1, G1, M1}, 6, NULL, 0);
    laws_build_close(&b);
    /* The layer says whose a moment is. */
    graph.n_layers = 2;
    graph.storage_layer = laws_take(&arena, graph.n_storages, sizeof(uint32_t));
    for (uint32_t s = 0; s < graph.n_storages; s++)
        graph.storage_layer[s] = MS_NONE;
    graph.storage_layer[W0] = graph.storage_layer[M0] = 0;
    graph.storage_layer[W1] = graph.storage_layer[M1] = 1;
    ck_assert_int_eq(ms_graph_check(&graph, &fault), MS_OK);
}

#define HEAD "memsim-program 1\nframes 1 ranks 2 micro-batches 1\n"
#define STAGES "stage 0 = rank 0 units 0-0\nstage 1 = rank 1 units 1-1\n"

static ms_err read(const char *text, ms_program *program)
{
    fault = (ms_fault){0};
    return ms_dumpread_program(&graph, "by hand", text, strlen(text), &arena,
                               program, &fault);
}

static const char calls[] =
    HEAD STAGES "run forward unit 0 frame 0 micro 0 keep all hold nothing\n"
                "run forward unit 1 frame 0 micro 0 rank 1 keep all hold "
                "nothing\n"
                "run backward unit 1 frame 0 micro 0 rank 1\n"
                "run backward unit 0 frame 0 micro 0\n"
                "step all frame 0 micro 0\n"
                "step all frame 0 micro 0 rank 1\n";

START_TEST(each_rank_holds_its_own)
{
    static const ms_expand_opts opts = {.uses = true};
    static const uint32_t held[2][4] = {{X, TIED, W0, M0}, {X, TIED, W1, M1}};
    ms_program program;
    ms_plan plan;
    build();
    ck_assert_int_eq(read(calls, &program), MS_OK);
    ck_assert_int_eq(ms_expand(&graph, &program, &opts, &arena, &plan, &fault),
                     MS_OK);
    for (uint32_t r = 0; r < 2; r++) {
        ck_assert_uint_eq(plan.op[r + 1].alloc_at - plan.op[r].alloc_at, 4);
        for (uint32_t i = 0; i < 4; i++)
            ck_assert_uint_eq(plan.row[plan.op[r].alloc_at + i].storage,
                              held[r][i]);
    }
    uint32_t step = plan.n_ops - 2;
    ck_assert_uint_eq(plan.op[step].of, graph.step_first);
    ck_assert_uint_eq(plan.op[step].rank, 0);
    ck_assert_uint_eq(plan.op[step].ns, 10); /* 300 of 1200 bytes */
    ck_assert_uint_eq(plan.op[step + 1].ns, 30);
    ck_assert(ms_plan_part(&plan.op[step]) == 0.25);
    ck_assert(ms_plan_part(&plan.op[0]) == 1.0);
    ms_arena_free(&arena);
}
END_TEST

START_TEST(the_step_is_counted_once)
{
    static const ms_expand_opts opts = {0};
    static const ms_machine machine = {.capacity_bytes = UINT64_C(1) << 40};
    ms_program program;
    ms_plan plan;
    ms_timeline line;
    ms_report report;
    build();
    ck_assert_int_eq(read(calls, &program), MS_OK);
    ck_assert_int_eq(ms_expand(&graph, &program, &opts, &arena, &plan, &fault),
                     MS_OK);
    ck_assert_int_eq(ms_replay(&plan, &machine, &arena, &line, &fault), MS_OK);
    ck_assert_int_eq(ms_measure(&line, &machine, &arena, &report, &fault),
                     MS_OK);
    ck_assert(report.optimizer_flops == graph.op_flops[graph.step_first]);
    ck_assert_uint_eq(report.ranks[0].category_peaks[MS_PARAMETERS], 108);
    ck_assert_uint_eq(report.ranks[1].category_peaks[MS_PARAMETERS], 308);
    ck_assert_uint_eq(report.ranks[1].category_peaks[MS_OPTIMIZER_STATE], 300);
    ms_arena_free(&arena);
}
END_TEST

START_TEST(text_reads_back)
{
    ms_program program, again;
    build();
    ms_text first = {.arena = &arena}, second = {.arena = &arena};
    ck_assert_int_eq(read(calls, &program), MS_OK);
    ms_dump_program(&graph, &program, &first);
    ck_assert_int_eq(read(first.bytes, &again), MS_OK);
    ms_dump_program(&graph, &again, &second);
    ck_assert_str_eq(first.bytes, second.bytes);
    ck_assert_ptr_nonnull(strstr(first.bytes, STAGES));
    ms_arena_free(&arena);
}
END_TEST

START_TEST(wrong_tables)
{
    static const char *const cases[][2] = {
        {HEAD "stage 0 = rank 0 units 0-0\n", "rank 1 has no stage"},
        {HEAD STAGES "stage 2 = rank 1 units 0-1\n",
         "unit 1 (block.1) is in two stages of rank 1"},
        {HEAD "stage 0 = rank 2 units 0-0\n", "rank 2 is out of range"},
        {HEAD "stage 0 = rank 0 units 0-2\n", "unit 2 is out of range"},
        {HEAD STAGES
         "run forward unit 1 frame 0 micro 0 keep all hold nothing\n",
         "unit 1 (block.1) is in no stage of rank 0"},
    };
    ms_program program;
    build();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(read(cases[i][0], &program), MS_EINPUT);
        ck_assert_msg(strstr(fault.what, cases[i][1]) != NULL, "%s",
                      fault.what);
    }
    ms_arena_free(&arena);
}
END_TEST

START_TEST(what_another_rank_makes_is_not_made_again)
{
    static const ms_expand_opts opts = {0};
    ms_program program;
    ms_plan plan;
    arena = (ms_arena){0};
    laws_chain(2, 1000, &arena, &graph);
    ck_assert_int_eq(
        read(HEAD "stage 0 = rank 0 units 0-0\nstage 1 = rank 1 units 1-2\n"
                  "run forward unit 0 frame 0 micro 0 keep all hold nothing\n"
                  "run forward unit 1 frame 0 micro 0 rank 1 keep all hold "
                  "nothing\n",
             &program),
        MS_OK);
    ck_assert_int_eq(ms_expand(&graph, &program, &opts, &arena, &plan, &fault),
                     MS_EINPUT);
    ck_assert_msg(strstr(fault.what, "of another rank makes") != NULL, "%s",
                  fault.what);
    ms_arena_free(&arena);
}
END_TEST

/* The second micro-batch adds to what an all-reduce still writes: it waits. */
static const char reduced_twice[] =
    "memsim-program 1\nframes 1 ranks 1 micro-batches 2\nset 0 = 6\n"
    "run forward unit 0 frame 0 micro 0 keep all hold nothing\n"
    "run forward unit 1 frame 0 micro 0 keep all hold nothing\n"
    "run backward unit 1 frame 0 micro 0\n"
    "reduce 0 frame 0 micro 0 to here\n"
    "run backward unit 0 frame 0 micro 0\n"
    "run forward unit 0 frame 0 micro 1 keep all hold nothing\n"
    "run forward unit 1 frame 0 micro 1 keep all hold nothing\n"
    "run backward unit 1 frame 0 micro 1\n"
    "run backward unit 0 frame 0 micro 1\n";

START_TEST(a_sum_waits_for_the_reduction)
{
    static const ms_expand_opts opts = {.groups = LAWS_GROUPS};
    static const ms_machine machine = {.capacity_bytes = UINT64_C(1) << 40};
    ms_program program;
    ms_plan plan;
    ms_timeline line;
    uint32_t add = MS_NONE, reduce = MS_NONE;
    build();
    ck_assert_int_eq(read(reduced_twice, &program), MS_OK);
    ck_assert_int_eq(ms_expand(&graph, &program, &opts, &arena, &plan, &fault),
                     MS_OK);
    ck_assert_int_eq(ms_replay(&plan, &machine, &arena, &line, &fault), MS_OK);
    for (uint32_t op = 0; op < plan.n_ops; op++) {
        uint32_t of = plan.op[op].of;
        if (plan.op[op].stream == MS_STREAM_COMM)
            reduce = op;
        else if (of != MS_NONE && plan.op[op].pass == MS_ACCUMULATE &&
                 graph.out[graph.out_at[of]] == G1)
            add = op;
    }
    ck_assert_uint_gt(plan.op[reduce].ns, 1000);
    ck_assert_uint_eq(plan.op[add].micro_batch, 1);
    ck_assert_uint_eq(line.start_ns[add], line.end_ns[reduce]);
    ms_arena_free(&arena);
}
END_TEST

Suite *suite_twostages(void)
{
    Suite *suite = suite_create("twostages");
    TCase *tcase = tcase_create("twostages");
    tcase_add_test(tcase, each_rank_holds_its_own);
    tcase_add_test(tcase, the_step_is_counted_once);
    tcase_add_test(tcase, text_reads_back);
    tcase_add_test(tcase, wrong_tables);
    tcase_add_test(tcase, what_another_rank_makes_is_not_made_again);
    tcase_add_test(tcase, a_sum_waits_for_the_reduction);
    suite_add_tcase(suite, tcase);
    return suite;
}
