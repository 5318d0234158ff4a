/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Worked by hand: the chain of two units of tests/laws/laws.h.
 *
 *   op          allocates   drops       level     at (launch 0)
 *   start       a0                      1000
 *   f0          a1                      2000      0-10
 *   f1          a2                      3000      10-20
 *   loss        loss                    3001      20
 *   b(loss)     d2                      4001      20
 *   b1          d1          a1 d2       5001      20-40     the peak
 *   b0          d0          d1 d0       4001      40-60
 *   (the loop)              a2 loss     1000 */
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/report.h"
#include "sim/schedule/schedule.h"
#include "sim/timeline.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"

#include <string.h>

typedef struct fixture {
    ms_arena arena;
    ms_graph graph;
    ms_program program;
    ms_machine machine;
    ms_plan plan;
    ms_timeline line;
    ms_report report;
    ms_fault fault;
} fixture;

static void open_chain(fixture *f)
{
    ms_keep keep;
    *f = (fixture){.machine = {.capacity_bytes = 6000, .context_bytes = 500}};
    laws_chain(2, 1000, &f->arena, &f->graph);
    ck_assert_int_eq(
        ms_program_keep_all(&f->graph, &f->arena, &keep, &f->fault), MS_OK);
    ck_assert_int_eq(ms_defaultprogram_alone(&f->graph, &keep, 1, &f->arena,
                                             &f->program, &f->fault),
                     MS_OK);
}

static const ms_rank_report *measure(fixture *f)
{
    ms_expand_opts opts = {.uses = true, .copy_ns = 100};
    ck_assert_int_eq(ms_expand(&f->graph, &f->program, &opts, &f->arena,
                               &f->plan, &f->fault),
                     MS_OK);
    ck_assert_int_eq(
        ms_replay(&f->plan, &f->machine, &f->arena, &f->line, &f->fault),
        MS_OK);
    ck_assert_int_eq(
        ms_measure(&f->line, &f->machine, &f->arena, &f->report, &f->fault),
        MS_OK);
    return &f->report.ranks[0];
}

START_TEST(peak_is_where_the_table_says)
{
    fixture f;
    open_chain(&f);
    const ms_peak *peak = &measure(&f)->peak;
    ck_assert_uint_eq(peak->allocated_bytes, 5001);
    ck_assert_uint_eq(peak->reserved_bytes, 5001);
    ck_assert_uint_eq(peak->t_ns, 20);
    ck_assert_uint_eq(peak->event, 5);
    ck_assert_uint_eq(peak->phase, MS_PHASE_BACKWARD);
    ck_assert_uint_eq(peak->pass, MS_GRAD_INPUT);
    ck_assert_str_eq(peak->op, "op4");
    ck_assert_str_eq(peak->layer, "layer");
    ck_assert_uint_eq(peak->micro_batch, 0);
    ck_assert_uint_eq(peak->by_category[MS_INPUTS], 1000);
    ck_assert_uint_eq(peak->by_category[MS_ACTIVATIONS], 1001);
    ck_assert_uint_eq(peak->by_category[MS_TEMPORARIES], 3000);
    ms_arena_free(&f.arena);
}
END_TEST

START_TEST(levels_and_phases_follow_the_table)
{
    fixture f;
    open_chain(&f);
    const ms_rank_report *rank = measure(&f);
    ck_assert_uint_eq(rank->levels[MS_MARK_START], 1000);
    ck_assert_uint_eq(rank->levels[MS_MARK_BEFORE_LOSS], 3000);
    ck_assert_uint_eq(rank->levels[MS_MARK_AFTER_FORWARD], 3001);
    ck_assert_uint_eq(rank->levels[MS_MARK_AFTER_BACKWARD], 2001);
    ck_assert_uint_eq(rank->levels[MS_MARK_END], 1000);
    ck_assert_uint_eq(rank->phase_peaks[MS_PHASE_FORWARD], 3000);
    ck_assert_uint_eq(rank->phase_peaks[MS_PHASE_LOSS], 3001);
    ck_assert_uint_eq(rank->phase_peaks[MS_PHASE_BACKWARD], 5001);
    ck_assert_uint_eq(rank->phase_peaks[MS_PHASE_OPTIMIZER], 0);
    const uint64_t *forward = rank->phase_by_category[MS_PHASE_FORWARD];
    ck_assert_uint_eq(forward[MS_INPUTS], 1000);
    ck_assert_uint_eq(forward[MS_ACTIVATIONS] + forward[MS_TEMPORARIES], 2000);
    const uint64_t *backward = rank->phase_by_category[MS_PHASE_BACKWARD];
    for (int c = 0; c < MS_N_CATEGORIES; c++)
        ck_assert_uint_eq(backward[c], rank->peak.by_category[c]);
    ck_assert_uint_eq(rank->saved_for_backward_bytes, 1001);
    ck_assert_uint_eq(rank->category_peaks[MS_ACTIVATIONS], 1001);
    ck_assert_uint_eq(rank->in_flight_micro_batches, 1);
    ms_arena_free(&f.arena);
}
END_TEST

START_TEST(workspace_is_left_out_of_levels)
{
    fixture f;
    open_chain(&f);
    f.graph.storage_category[5] = MS_WORKSPACE; /* d1 */
    const ms_rank_report *rank = measure(&f);
    ck_assert_uint_eq(rank->peak.allocated_bytes, 5001);
    ck_assert_uint_eq(rank->phase_peaks[MS_PHASE_BACKWARD], 4001);
    ck_assert_uint_eq(rank->phase_peaks_with_workspace[MS_PHASE_BACKWARD],
                      5001);
    ck_assert_uint_eq(rank->category_peaks[MS_WORKSPACE], 1000);
    ms_arena_free(&f.arena);
}
END_TEST

START_TEST(buffers_are_no_parameters)
{
    fixture f;
    open_chain(&f);
    f.graph.storage_category[0] = MS_PARAMETERS;
    ck_assert_uint_eq(measure(&f)->parameters_bytes, 1000);
    f.graph.storage_buffer[0] = 1;
    const ms_rank_report *rank = measure(&f);
    ck_assert_uint_eq(rank->parameters_bytes, 0);
    ck_assert_uint_eq(rank->category_peaks[MS_PARAMETERS], 1000);
    ms_arena_free(&f.arena);
}
END_TEST

/* The host issues an op each 15 ns: f1 and b0 wait 5 and 0 ns for it, the
 * loss, issued behind two kernels, 5. */
START_TEST(slow_host_shows_as_host_bound)
{
    fixture f;
    open_chain(&f);
    f.machine.launch_ns = 15;
    const ms_times *time = &measure(&f)->time;
    ck_assert_uint_eq(time->step_ns, 85);
    ck_assert_uint_eq(time->forward_ns, 20);
    ck_assert_uint_eq(time->backward_ns, 40);
    ck_assert_uint_eq(time->host_bound_ns, 25);
    ck_assert_uint_eq(time->idle_ns, 0);
    ms_arena_free(&f.arena);
}
END_TEST

START_TEST(rates_need_tokens_and_a_known_peak)
{
    fixture f;
    open_chain(&f);
    measure(&f);
    ck_assert_double_lt(f.report.tokens_per_second, 0);
    ck_assert_double_lt(f.report.mfu, 0);
    f.graph.tokens = 3;
    f.graph.model_flops = 60;
    f.machine.peak_flops = 2e9;
    measure(&f);
    ck_assert_double_eq_tol(f.report.tokens_per_second, 5e7, 1);
    ck_assert_double_eq_tol(f.report.mfu, 0.5, 1e-9);
    ck_assert_double_eq(f.report.forward_flops, 20);
    ck_assert_double_eq(f.report.backward_flops, 40);
    ms_arena_free(&f.arena);
}
END_TEST

START_TEST(context_counts_for_fits)
{
    fixture f;
    open_chain(&f);
    measure(&f);
    ck_assert(f.report.fits);
    ck_assert_int_eq(f.report.status, MS_FITS);
    ck_assert_int_eq(f.report.headroom_bytes, 499);
    f.machine.capacity_bytes = 5501;
    measure(&f);
    ck_assert(f.report.fits);
    f.machine.capacity_bytes = 5500;
    measure(&f);
    ck_assert(!f.report.fits);
    ck_assert_int_eq(f.report.status, MS_OVER);
    ck_assert_int_eq(f.report.headroom_bytes, -1);
    ms_arena_free(&f.arena);
}
END_TEST

static void add_call(fixture *f, ms_call call)
{
    ck_assert_int_eq(ms_program_add(&f->program, call, &f->arena, &f->fault),
                     MS_OK);
}

/* A second rank does the same, but a1 spends the loss in host memory. */
static void add_rank_with_move(fixture *f)
{
    uint32_t n = f->program.n_calls, a1 = 1;
    ms_call move = ms_program_call(MS_MOVE);
    move.rank = 1;
    move.move.to = MS_HOST;
    ck_assert_int_eq(ms_program_add_set(&f->program, &a1, 1, &f->arena,
                                        &move.set, &f->fault),
                     MS_OK);
    f->program.n_ranks = 2;
    for (uint32_t i = 0; i < n; i++) {
        ms_call call = f->program.calls[i];
        call.rank = 1;
        add_call(f, call);
        if (call.verb == MS_MARK && call.mark.mark == MS_MARK_BEFORE_LOSS)
            add_call(f, move);
    }
}

START_TEST(ranks_have_own_levels_and_traffic)
{
    fixture f;
    open_chain(&f);
    add_rank_with_move(&f);
    measure(&f);
    const ms_rank_report *ranks = f.report.ranks;
    ck_assert_uint_eq(f.report.n_ranks, 2);
    ck_assert_uint_eq(f.report.worst, 0);
    ck_assert_uint_eq(ranks[0].d2h_bytes, 0);
    ck_assert_uint_eq(ranks[1].d2h_bytes, 1000);
    ck_assert_uint_eq(ranks[1].h2d_bytes, 1000);
    ck_assert_uint_eq(f.report.host_peak_bytes, 1000);
    ck_assert_uint_eq(ranks[1].peak.allocated_bytes, 5001);
    ck_assert_uint_eq(ranks[1].levels[MS_MARK_AFTER_FORWARD], 2001);
    ck_assert_uint_eq(ranks[1].saved_for_backward_bytes, 1);
    ck_assert_uint_ge(ranks[1].time.stall_ns, 100);
    for (uint16_t rank = 0; rank < 2; rank++) {
        const ms_times *time = &ranks[rank].time;
        ck_assert_uint_eq(time->step_ns, time->forward_ns + time->backward_ns +
                                             time->stall_ns +
                                             time->host_bound_ns +
                                             time->bubble_ns + time->idle_ns);
    }
    ms_arena_free(&f.arena);
}
END_TEST

START_TEST(unmarked_program_has_no_levels)
{
    fixture f;
    open_chain(&f);
    uint32_t n = 0;
    for (uint32_t i = 0; i < f.program.n_calls; i++)
        if (f.program.calls[i].verb != MS_MARK)
            f.program.calls[n++] = f.program.calls[i];
    f.program.n_calls = n;
    const ms_rank_report *rank = measure(&f);
    for (int mark = 0; mark < MS_N_MARKS; mark++)
        ck_assert_uint_eq(rank->levels[mark], MS_NO_LEVEL);
    ck_assert_uint_eq(rank->saved_for_backward_bytes, MS_NO_LEVEL);
    ms_arena_free(&f.arena);
}
END_TEST

START_TEST(device_books_have_the_same_peak_on_one_stream)
{
    fixture f;
    open_chain(&f);
    f.machine.book_device = true;
    const ms_rank_report *rank = measure(&f);
    ck_assert_uint_eq(rank->peak.allocated_bytes, 5001);
    ck_assert_uint_eq(rank->peak.phase, MS_PHASE_BACKWARD);
    ck_assert_uint_eq(rank->phase_peaks[MS_PHASE_FORWARD], 3000);
    ck_assert_uint_eq(rank->levels[MS_MARK_BEFORE_LOSS], 3000);
    ms_arena_free(&f.arena);
}
END_TEST

START_TEST(running_out_of_memory_is_a_fault)
{
    fixture f;
    open_chain(&f);
    measure(&f);
    ms_arena none = {.limit_bytes = 16};
    ms_report report;
    ck_assert_int_eq(ms_measure(&f.line, &f.machine, &none, &report, &f.fault),
                     MS_ENOMEM);
    ms_arena_free(&none);
    ms_arena_free(&f.arena);
}
END_TEST

Suite *suite_measure(void)
{
    Suite *suite = suite_create("measure");
    TCase *tcase = tcase_create("measure");
    tcase_add_test(tcase, peak_is_where_the_table_says);
    tcase_add_test(tcase, levels_and_phases_follow_the_table);
    tcase_add_test(tcase, workspace_is_left_out_of_levels);
    tcase_add_test(tcase, buffers_are_no_parameters);
    tcase_add_test(tcase, slow_host_shows_as_host_bound);
    tcase_add_test(tcase, rates_need_tokens_and_a_known_peak);
    tcase_add_test(tcase, context_counts_for_fits);
    tcase_add_test(tcase, ranks_have_own_levels_and_traffic);
    tcase_add_test(tcase, unmarked_program_has_no_levels);
    tcase_add_test(tcase, device_books_have_the_same_peak_on_one_stream);
    tcase_add_test(tcase, running_out_of_memory_is_a_fault);
    suite_add_tcase(suite, tcase);
    return suite;
}
