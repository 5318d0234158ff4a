/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/laws/asserts.h"
#include "tests/tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/report.h"
#include "sim/schedule/schedule.h"
#include "sim/timeline.h"
#include "tools/results/sheet.h"

/* MEMSIM_SEED=n starts at seed n; trial i of a run has seed n + i. */
#define FIRST_SEED 1u
#define N_TRIALS 700u

/* One way through the house: program to report. */
typedef struct one_run {
    ms_plan plan;
    ms_timeline line;
    ms_report report;
} one_run;

/* The disk writes in no time, as where a device gives it no rate. */
static const ms_expand_opts opts = {.uses = true,
                                    .h2d_bytes_per_s = 1e10,
                                    .d2h_bytes_per_s = 2e10,
                                    .copy_ns = 7,
                                    .host_bytes_per_s = 3e10,
                                    .nvme_read_bytes_per_s = 7e9,
                                    .hbm_bytes_per_s = 1.1e11,
                                    .flops_per_s = 1.3e13,
                                    .groups = LAWS_GROUPS};

static one_run *run_program(const ms_graph *graph, const ms_program *program,
                            const ms_machine *machine, ms_arena *arena)
{
    ms_fault fault = {0};
    one_run *run = ms_arena_take(arena, 1, sizeof *run);
    ck_assert_ptr_nonnull(run);
    MUST(ms_check_program(graph, program, &fault));
    MUST(ms_expand(graph, program, &opts, arena, &run->plan, &fault));
    MUST(ms_replay(&run->plan, machine, arena, &run->line, &fault));
    MUST(ms_measure(&run->line, machine, arena, &run->report, &fault));
    return run;
}

static uint64_t peak_of(const one_run *run)
{
    return run->report.ranks[0].peak.allocated_bytes;
}

static const char *json_of(const one_run *run, ms_arena *arena)
{
    ms_report_names names = {"random", "none", "none", "{}", NULL, NULL};
    ms_text text = {.arena = arena};
    ms_sheet_json(&run->report, run->plan.graph, &names, NULL, &text);
    ck_assert(!text.failed);
    return text.bytes;
}

/* A trial: a graph, a machine and choices, all from one seed. */
typedef struct law_trial {
    laws_random random;
    ms_arena *arena;
    ms_graph graph;
    ms_machine machine;
    uint32_t micro_batches;
    ms_keep keep;
} law_trial;

static void open_trial(law_trial *trial, uint64_t seed, ms_arena *arena)
{
    ms_fault fault = {0};
    laws_seed = seed;
    *trial = (law_trial){.random = {seed}, .arena = arena};
    laws_random *random = &trial->random;
    laws_graph(random, arena, &trial->graph);
    MUST(ms_graph_check(&trial->graph, &fault));
    trial->machine = (ms_machine){.launch_ns = laws_below(random, 40),
                                  .capacity_bytes = laws_below(random, 1000000),
                                  .context_bytes = 1000,
                                  .peak_flops = 1e12};
    laws_framework(&trial->machine);
    trial->micro_batches = 1 + laws_below(random, 3);
    laws_keep(random, &trial->graph, arena, &trial->keep);
}

static ms_program program_of(const law_trial *trial, const ms_keep *keep)
{
    ms_fault fault = {0};
    ms_program program;
    MUST(ms_defaultprogram_alone(&trial->graph, keep, trial->micro_batches,
                                 trial->arena, &program, &fault));
    return program;
}

static ms_program program_of_none(const law_trial *trial)
{
    ms_fault fault = {0};
    ms_keep all;
    MUST(ms_program_keep_all(&trial->graph, trial->arena, &all, &fault));
    return program_of(trial, &all);
}

static ms_program program_with_moves(law_trial *trial)
{
    ms_program program = program_of(trial, &trial->keep);
    laws_moves(&trial->random, &trial->graph, trial->arena, &program);
    return program;
}

/* A program that moves storages and runs tasks between the moves. */
static ms_program program_with_work(law_trial *trial)
{
    ms_program program = program_with_moves(trial);
    laws_work(&trial->random, &trial->graph, trial->arena, &program);
    return program;
}

static one_run *run_trial(const law_trial *trial, const ms_program *program)
{
    return run_program(&trial->graph, program, &trial->machine, trial->arena);
}

/* Calls law for each seed of the run. */
static void for_each_trial(const char *name, void (*law)(law_trial *trial))
{
    const char *text = getenv("MEMSIM_SEED");
    uint64_t first = text ? strtoull(text, NULL, 10) : FIRST_SEED;
    ms_arena arena = {0};
    printf("%s: seeds %llu to %llu\n", name, (unsigned long long)first,
           (unsigned long long)(first + N_TRIALS - 1));
    fflush(stdout);
    for (uint64_t seed = first; seed < first + N_TRIALS; seed++) {
        law_trial trial;
        open_trial(&trial, seed, &arena);
        law(&trial);
        ms_arena_reset(&arena);
    }
    ms_arena_free(&arena);
}

/* ---- books and clock ----------------------------------------------------- */

static void check_program(const law_trial *trial, const ms_program *program)
{
    one_run *host = run_trial(trial, program);
    laws_check_rows(&host->plan);
    laws_check_clock(&host->plan, &host->line, &trial->machine);
    laws_check_levels(&host->plan, &host->line);
    laws_check_streams(&host->plan);
    laws_check_active(&host->plan, &host->line, &trial->machine);
    laws_check_report(&host->line, &host->report, true);
    laws_check_layers(&host->line, &host->report, trial->arena);
    law_trial by_device = *trial;
    by_device.machine.book_device = true;
    one_run *device = run_trial(&by_device, program);
    laws_check_clock(&device->plan, &device->line, &trial->machine);
    laws_check_device_levels(&device->plan, &device->line);
    laws_check_report(&device->line, &device->report, false);
    laws_check_layers(&device->line, &device->report, trial->arena);
}

static void conserve(law_trial *trial)
{
    ms_program none = program_of_none(trial);
    check_program(trial, &none);
    ms_program kept = program_of(trial, &trial->keep);
    check_program(trial, &kept);
    ms_program moved = program_with_moves(trial);
    check_program(trial, &moved);
}

START_TEST(books_and_clock_agree_with_oracle)
{
    for_each_trial("books and clock", conserve);
}
END_TEST

/* Storages are gathered, reduced and released at random times; ops still
 * find what they read, and the ranks start with less memory. */
static void share(law_trial *trial)
{
    ms_program alone = program_of(trial, &trial->keep);
    one_run *before = run_trial(trial, &alone);
    laws_share(&trial->random, &trial->graph, trial->arena);
    ms_program shared = program_of(trial, &trial->keep);
    check_program(trial, &shared);
    one_run *after = run_trial(trial, &shared);
    LAW(after->report.ranks[0].levels[MS_MARK_START] <=
        before->report.ranks[0].levels[MS_MARK_START]);
    ms_program moved = program_with_moves(trial);
    laws_collectives(&trial->random, &trial->graph, trial->arena, &moved);
    check_program(trial, &moved);
}

START_TEST(shared_states_are_found)
{
    for_each_trial("shared states", share);
}
END_TEST

static void follow_template(law_trial *trial)
{
    ms_program none = program_of_none(trial);
    one_run *run = run_trial(trial, &none);
    const ms_graph *graph = &trial->graph;
    laws_check_template(graph, &run->plan, trial->micro_batches);
    uint64_t saved_bytes = 0;
    for (uint32_t s = 0; s < graph->n_storages; s++)
        if (graph->storage_saved_end[s] != MS_NONE)
            saved_bytes += graph->storage_bytes[s];
    LAW(run->report.ranks[0].saved_for_backward_bytes == saved_bytes);
    LAW(run->plan.recomputed_ops == 0);
}

/* Tasks of a program take their own time and nothing else: they use no
 * memory, and no other op gets longer. */
static void work(law_trial *trial)
{
    ms_program moved = program_with_moves(trial), worked = moved;
    if (laws_chance(&trial->random, 30))
        worked = moved = program_of(trial, &trial->keep);
    laws_work(&trial->random, &trial->graph, trial->arena, &worked);
    check_program(trial, &worked);
    one_run *before = run_trial(trial, &moved);
    one_run *after = run_trial(trial, &worked);
    laws_check_work(&worked, &opts, &after->line, &before->plan);
    laws_check_work_times(&after->line, &after->report.ranks[0]);
    LAW(peak_of(after) == peak_of(before));
    LAW(after->line.step_ns >= before->line.step_ns);
}

START_TEST(work_takes_its_time)
{
    for_each_trial("work", work);
}
END_TEST

START_TEST(all_kept_follows_from_the_graph)
{
    for_each_trial("all kept", follow_template);
}
END_TEST

/* ---- recomputation ------------------------------------------------------- */

/* Updates run on the queue of collectives and the compute stream waits for
 * them, so that more or less of them overlaps with other work. */
static bool updates_beside(const ms_graph *graph)
{
    for (uint32_t op = graph->step_first; op < graph->n_ops; op++)
        if (graph->op_stream[op] == MS_STREAM_COMM)
            return true;
    return false;
}

static void compare_work(const one_run *none, const one_run *kept)
{
    const ms_times *a = &none->report.ranks[0].time;
    const ms_times *b = &kept->report.ranks[0].time;
    LAW(a->forward_ns == b->forward_ns);
    LAW(a->backward_ns == b->backward_ns);
    LAW(a->optimizer_ns == b->optimizer_ns || updates_beside(none->plan.graph));
    LAW(a->step_ns <= b->step_ns);
    LAW(none->report.forward_flops == kept->report.forward_flops);
    LAW(none->report.backward_flops == kept->report.backward_flops);
    LAW(none->report.optimizer_flops == kept->report.optimizer_flops);
    LAW(none->report.recompute_flops == 0);
    LAW((kept->report.recompute_flops > 0) <= (kept->plan.recomputed_ops > 0));
}

/* Checks that only forward ops are run again. */
static void check_recomputed(const one_run *run)
{
    uint32_t n = 0;
    for (uint32_t op = 0; op < run->plan.n_ops; op++) {
        if (run->plan.op[op].pass != MS_RECOMPUTE)
            continue;
        LAW(run->plan.graph->op_pass[run->plan.op[op].of] <= MS_LOSS);
        n++;
    }
    LAW(run->plan.recomputed_ops == n);
}

static uint64_t after_forward(const one_run *run)
{
    return run->report.ranks[0].levels[MS_MARK_AFTER_FORWARD];
}

/* Keeping less in the same segments never leaves more alive after forward. */
static void keep_less(law_trial *trial)
{
    ms_program none = program_of_none(trial);
    ms_program some = program_of(trial, &trial->keep);
    one_run *with_none = run_trial(trial, &none);
    one_run *with_some = run_trial(trial, &some);
    compare_work(with_none, with_some);
    check_recomputed(with_some);
    for (uint32_t s = 0; s < trial->graph.n_storages; s++)
        if (trial->graph.storage_saved_end[s] != MS_NONE &&
            laws_chance(&trial->random, 50))
            trial->keep.place[s] = MS_GONE;
    ms_program less = program_of(trial, &trial->keep);
    one_run *with_less = run_trial(trial, &less);
    LAW(after_forward(with_less) <= after_forward(with_some));
    compare_work(with_none, with_less);
}

START_TEST(recomputing_costs_work_and_frees_memory)
{
    for_each_trial("recompute", keep_less);
}
END_TEST

/* ---- monotonicity, determinism ------------------------------------------- */

static void scale(law_trial *trial)
{
    ms_graph *graph = &trial->graph;
    ms_program program = program_with_work(trial);
    one_run *before = run_trial(trial, &program);
    for (uint32_t s = 0; s < graph->n_storages; s++)
        graph->storage_bytes[s] *= 3;
    one_run *scaled = run_trial(trial, &program);
    LAW(peak_of(scaled) == 3 * peak_of(before));
    LAW(scaled->report.host_peak_bytes == 3 * before->report.host_peak_bytes);
    for (uint32_t s = 0; s < graph->n_storages; s++)
        graph->storage_bytes[s] += laws_below(&trial->random, 2);
    one_run *larger = run_trial(trial, &program);
    LAW(peak_of(larger) >= peak_of(scaled));
    for (uint32_t op = 0; op < graph->n_ops; op++)
        graph->op_ns[op] /= 1 + laws_below(&trial->random, 3);
    one_run *faster = run_trial(trial, &program);
    LAW(faster->report.ranks[0].time.step_ns <=
        larger->report.ranks[0].time.step_ns);
    LAW(peak_of(faster) == peak_of(larger));
}

START_TEST(bytes_scale_and_speed_is_monotone)
{
    for_each_trial("monotone", scale);
}
END_TEST

static void same_events(const ms_timeline *a, const ms_timeline *b)
{
    LAW(a->n_events == b->n_events);
    for (uint32_t e = 0; e < a->n_events; e++) {
        const ms_event *is = &b->events[e], *was = &a->events[e];
        HOLDS(is->t_ns == was->t_ns && is->row == was->row &&
                  is->op_act == was->op_act,
              "event %u: row %u by %u at %llu, then row %u by %u at %llu", e,
              was->row, was->op_act, (unsigned long long)was->t_ns, is->row,
              is->op_act, (unsigned long long)is->t_ns);
    }
}

static void repeat(law_trial *trial)
{
    ms_program program = program_with_work(trial);
    ms_arena other = {0};
    one_run *a = run_trial(trial, &program);
    one_run *b = run_program(&trial->graph, &program, &trial->machine, &other);
    same_events(&a->line, &b->line);
    SAME_TEXT(json_of(a, trial->arena), json_of(b, &other));
    ms_arena_free(&other);
}

START_TEST(same_input_same_bytes)
{
    for_each_trial("determinism", repeat);
}
END_TEST

static void read_back(law_trial *trial)
{
    ms_fault fault = {0};
    ms_program program = program_with_work(trial), again;
    ms_text text = {.arena = trial->arena}, second = text;
    ms_dump_program(&trial->graph, &program, &text);
    MUST(ms_dumpread_program(&trial->graph, "dump", text.bytes, text.length,
                             trial->arena, &again, &fault));
    ms_dump_program(&trial->graph, &again, &second);
    SAME_TEXT(second.bytes, text.bytes);
    one_run *a = run_trial(trial, &program), *b = run_trial(trial, &again);
    SAME_TEXT(json_of(b, trial->arena), json_of(a, trial->arena));
}

START_TEST(dumped_program_reads_back)
{
    for_each_trial("dump", read_back);
}
END_TEST

/* ---- folds --------------------------------------------------------------- */

static void check_points(const law_trial *trial, const one_run *run,
                         uint32_t most)
{
    ms_fault fault = {0};
    ms_point *points;
    uint32_t n;
    uint64_t highest = 0;
    MUST(ms_timeline_points(&run->line, 0, most, trial->arena, &points, &n,
                            &fault));
    LAW(n > 0 && n <= most);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t sum = 0;
        for (int c = 0; c < MS_N_CATEGORIES; c++)
            sum += points[i].bytes[c];
        LAW(sum == points[i].total_bytes);
        LAW(i == 0 || points[i].t_ns >= points[i - 1].t_ns);
        if (sum > highest)
            highest = sum;
    }
    LAW(highest == peak_of(run));
    LAW(points[n - 1].total_bytes ==
        run->line.ranks[0].pool[MS_DEVICE_POOL].now_bytes);
}

static void fold(law_trial *trial)
{
    ms_fault fault = {0};
    ms_program program = program_with_moves(trial);
    one_run *run = run_trial(trial, &program);
    check_points(trial, run, 4 + laws_below(&trial->random, 40));
    check_points(trial, run, 100000);
    uint32_t *rows, n;
    uint64_t sum = 0;
    MUST(ms_timeline_alive(&run->line, run->report.ranks[0].peak.event, 0,
                           trial->arena, &rows, &n, &fault));
    for (uint32_t i = 0; i < n; i++) {
        sum += run->plan.row[rows[i]].bytes;
        LAW(i == 0 ||
            run->plan.row[rows[i]].bytes <= run->plan.row[rows[i - 1]].bytes);
    }
    LAW(sum == peak_of(run));
}

START_TEST(points_and_alive_sets_keep_the_peak)
{
    for_each_trial("folds", fold);
}
END_TEST

/* ---- closed forms -------------------------------------------------------- */

#define UNIT_BYTES ((uint64_t)1000)

static one_run *run_chain(const ms_graph *graph, const char *policy,
                          ms_arena *arena)
{
    ms_fault fault = {0};
    ms_spec spec = {0};
    ms_program program;
    ms_machine machine = {0};
    MUST(ms_spec_parse(policy, arena, &spec, &fault));
    MUST(ms_apply_program(&spec,
                          &(ms_policy_context){.graph = graph, .arena = arena},
                          1, &program, &fault));
    return run_program(graph, &program, &machine, arena);
}

static uint32_t rounded_root(uint32_t n)
{
    uint32_t k = 1;
    while (k * k + k < n) /* (k + 1/2)^2 = k^2 + k + 1/4 */
        k++;
    return k;
}

static void check_chain(uint32_t n, ms_arena *arena)
{
    ms_graph graph;
    laws_seed = n;
    laws_chain(n, UNIT_BYTES, arena, &graph);
    uint32_t k = rounded_root(n), last = n / k;
    one_run *none = run_chain(&graph, "none", arena);
    LAW(peak_of(none) / UNIT_BYTES == n + 3);
    one_run *sqrt = run_chain(&graph, "checkpoint:sqrt", arena);
    LAW(peak_of(sqrt) / UNIT_BYTES == k + last + 2);
    LAW(sqrt->plan.recomputed_ops == n - last - (k - 1));
    one_run *whole = run_chain(&graph, "checkpoint:sqrt,early_stop=0", arena);
    LAW(peak_of(whole) / UNIT_BYTES == k + last + 2);
    LAW(whole->plan.recomputed_ops == n - last);
    one_run *reentrant =
        run_chain(&graph, "checkpoint:sqrt,variant=reentrant", arena);
    LAW(reentrant->plan.recomputed_ops == n - last);
}

START_TEST(sqrt_chain_has_its_closed_form)
{
    ms_arena arena = {0};
    for (uint32_t n = 4; n <= 400; n++) {
        check_chain(n, &arena);
        ms_arena_reset(&arena);
    }
    ms_arena_free(&arena);
}
END_TEST

Suite *suite_laws(void)
{
    Suite *suite = suite_create("laws");
    TCase *tcase = tcase_create("laws");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, books_and_clock_agree_with_oracle);
    tcase_add_test(tcase, shared_states_are_found);
    tcase_add_test(tcase, work_takes_its_time);
    tcase_add_test(tcase, all_kept_follows_from_the_graph);
    tcase_add_test(tcase, recomputing_costs_work_and_frees_memory);
    tcase_add_test(tcase, bytes_scale_and_speed_is_monotone);
    tcase_add_test(tcase, same_input_same_bytes);
    tcase_add_test(tcase, dumped_program_reads_back);
    tcase_add_test(tcase, points_and_alive_sets_keep_the_peak);
    tcase_add_test(tcase, sqrt_chain_has_its_closed_form);
    suite_add_tcase(suite, tcase);
    return suite;
}
