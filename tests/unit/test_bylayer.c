/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Worked by hand: the chain of four units of tests/laws/laws.h, each its own
 * block, 1000 bytes and 10 ns; unit u makes a_(u + 1), which the next saves;
 * the loss of one byte is in no block.  Two micro-batches. */
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/measure/bylayer.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/report.h"
#include "sim/schedule/schedule.h"
#include "sim/timeline.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"

#include <string.h>

#define N 5u

static ms_arena arena;
static ms_fault fault;
static ms_graph graph;
static ms_keep keep;
static ms_plan plan;
static ms_timeline line;
static ms_report report;
static ms_layer_use *layers;
static uint32_t n;

#define MUST(call) ck_assert_msg((call) == MS_OK, "%s", fault.what)

static void setup(void)
{
    arena = (ms_arena){0};
    fault = (ms_fault){0};
    laws_chain(4, 1000, &arena, &graph);
    MUST(ms_program_keep_all(&graph, &arena, &keep, &fault));
}

static void teardown(void)
{
    ms_arena_free(&arena);
}

static void measure(bool by_device)
{
    ms_program program;
    ms_machine machine = {.capacity_bytes = 10000, .book_device = by_device};
    ms_expand_opts opts = {.uses = true};
    MUST(ms_defaultprogram_alone(&graph, &keep, 2, &arena, &program, &fault));
    MUST(ms_expand(&graph, &program, &opts, &arena, &plan, &fault));
    MUST(ms_replay(&plan, &machine, &arena, &line, &fault));
    MUST(ms_measure(&line, &machine, &arena, &report, &fault));
    MUST(ms_bylayer_measure(&line, 0, &arena, &layers, &n, &fault));
}

static void check(const uint64_t *saved_bytes, const uint64_t *recompute_ns)
{
    static const char *const names[N] = {"block.0", "block.1", "block.2",
                                         "block.3", "layer"};
    ck_assert_uint_eq(n, N);
    for (uint32_t i = 0; i < N; i++) {
        ck_assert_str_eq(layers[i].name, names[i]);
        ck_assert_uint_eq(layers[i].saved_bytes, saved_bytes[i]);
        ck_assert_uint_eq(layers[i].recompute_ns, recompute_ns[i]);
        ck_assert_uint_eq(layers[i].forward_ns, i < 4 ? 20 : 0);
    }
}

/* a_4 is read by the loss, but not saved. */
START_TEST(all_is_kept)
{
    static const uint64_t saved_bytes[N] = {1000, 1000, 1000, 0, 1};
    static const uint64_t recompute_ns[N] = {0};
    for (int by_device = 0; by_device < 2; by_device++) {
        measure(by_device);
        check(saved_bytes, recompute_ns);
        ck_assert_uint_eq(report.ranks[0].saved_for_backward_bytes, 3001);
    }
}
END_TEST

/* Units 1 and 2 are a segment: a_2 is made again, a_1 is what its closure
 * holds, of which the report's number knows nothing. */
START_TEST(a_checkpoint_drops_and_holds)
{
    static const uint64_t saved_bytes[N] = {1000, 0, 1000, 0, 1};
    static const uint64_t recompute_ns[N] = {0, 20, 0, 0, 0};
    keep.segment[1] = keep.segment[2] = 0;
    keep.place[1] = keep.place[2] = MS_GONE;
    measure(false);
    check(saved_bytes, recompute_ns);
    ck_assert_uint_eq(report.ranks[0].saved_for_backward_bytes, 1001);
}
END_TEST

START_TEST(layers_without_a_name_are_units)
{
    static const char *const no_names[] = {""};
    graph.layer_name = (const char **)no_names;
    graph.unit_name[4] = "fifth";
    measure(false);
    ck_assert_uint_eq(n, N);
    ck_assert_str_eq(layers[4].name, "fifth");
}
END_TEST

START_TEST(without_the_mark_nothing_is_saved)
{
    measure(false);
    for (uint32_t m = 0; m < plan.n_marks; m++)
        if (plan.marks[m].mark == MS_MARK_AFTER_FORWARD)
            plan.marks[m].mark = MS_MARK_START;
    MUST(ms_bylayer_measure(&line, 0, &arena, &layers, &n, &fault));
    ck_assert_uint_eq(n, N);
    for (uint32_t i = 0; i < n; i++)
        ck_assert_uint_eq(layers[i].saved_bytes, 0);
}
END_TEST

START_TEST(running_out_of_memory_is_a_fault)
{
    measure(false);
    for (uint64_t limit_bytes = 16; limit_bytes < 100; limit_bytes += 20) {
        ms_arena none = {.limit_bytes = limit_bytes};
        ck_assert_int_eq(
            ms_bylayer_measure(&line, 0, &none, &layers, &n, &fault),
            MS_ENOMEM);
        ms_arena_free(&none);
    }
}
END_TEST

Suite *suite_bylayer(void)
{
    Suite *suite = suite_create("bylayer");
    TCase *tcase = tcase_create("bylayer");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, all_is_kept);
    tcase_add_test(tcase, a_checkpoint_drops_and_holds);
    tcase_add_test(tcase, layers_without_a_name_are_units);
    tcase_add_test(tcase, without_the_mark_nothing_is_saved);
    tcase_add_test(tcase, running_out_of_memory_is_a_fault);
    suite_add_tcase(suite, tcase);
    return suite;
}
