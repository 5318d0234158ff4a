/* SPDX-License-Identifier: GPL-3.0-or-later */
/* WORK by hand, on a chain of two units (tests/laws/laws.h): forward takes 10
 * ns, backward 20, the loss nothing.
 *
 *     compute   F0 0-10   work 10-15   .       F1 20-30   .       back 50-90
 *     h2d                 work of a_1 10-20
 *     host                                     work of a_2 30-50
 *     compute   work of FLOPs 90-93
 */
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/measure/waits.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"

#include <string.h>

static const char text[] =
    "memsim-program 1\nframes 1 ranks 1 micro-batches 1\n"
    "set 0 = 1\nset 1 = 2\n"
    "task 0 = 5 ns compute\ntask 1 = 100 bytes h2d\n"
    "task 2 = 1000 bytes host\ntask 3 = 3000 flops compute\n"
    "run forward unit 0 frame 0 micro 0 keep all hold nothing\n"
    "work 0 frame 0 micro 0\n"
    "work 1 frame 0 micro 0 of 0\n"
    "run forward unit 1 frame 0 micro 0 keep all hold nothing\n"
    "work 2 frame 0 micro 0 of 1\n"
    "run forward unit 2 frame 0 micro 0 keep all hold nothing\n"
    "run backward unit 2 frame 0 micro 0\n"
    "run backward unit 1 frame 0 micro 0\n"
    "run backward unit 0 frame 0 micro 0\n"
    "work 3 frame 0 micro 0\n";
static const ms_expand_opts opts = {
    .h2d_bytes_per_s = 1e10, .host_bytes_per_s = 5e10, .flops_per_s = 1e12};
static const ms_machine machine = {.capacity_bytes = UINT64_C(1) << 40,
                                   .peak_flops = 1e12};

START_TEST(work_is_waited_for_and_told)
{
    ms_arena arena = {0};
    ms_fault fault = {0};
    ms_graph graph;
    ms_program program;
    ms_plan plan;
    ms_timeline line;
    ms_report report;
    laws_chain(2, 1000, &arena, &graph);
    ck_assert_int_eq(ms_dumpread_program(&graph, "by hand", text, strlen(text),
                                         &arena, &program, &fault),
                     MS_OK);
    ck_assert_int_eq(ms_expand(&graph, &program, &opts, &arena, &plan, &fault),
                     MS_OK);
    ck_assert_int_eq(ms_replay(&plan, &machine, &arena, &line, &fault), MS_OK);
    ck_assert_int_eq(ms_measure(&line, &machine, &arena, &report, &fault),
                     MS_OK);
    double flops = 0; /* of the graph alone */
    for (uint32_t op = 0; op < graph.n_ops; op++)
        flops += graph.op_flops[op];
    const ms_rank_report *rank = &report.ranks[0];
    ck_assert_uint_eq(rank->time.step_ns, 93);
    ck_assert_uint_eq(rank->time.forward_ns, 20);
    ck_assert_uint_eq(rank->time.backward_ns, 40);
    ck_assert_uint_eq(rank->time.stall_ns, 33);
    ck_assert_uint_eq(rank->stalls_ns[MS_CAUSE_PACK], 5 + 5 + 3);
    ck_assert_uint_eq(rank->stalls_ns[MS_CAUSE_HOST_WORK], 20);
    ck_assert_uint_eq(rank->links[MS_LINK_HOST].time.busy_ns, 20);
    ck_assert_uint_eq(rank->links[MS_LINK_H2D].time.busy_ns, 0);
    ck_assert_uint_eq(rank->h2d_bytes, 0);
    ck_assert(report.forward_flops + report.backward_flops == flops);
    ms_arena_free(&arena);
}
END_TEST

Suite *suite_work(void)
{
    Suite *suite = suite_create("work");
    TCase *tcase = tcase_create("work");
    tcase_add_test(tcase, work_is_waited_for_and_told);
    suite_add_tcase(suite, tcase);
    return suite;
}
