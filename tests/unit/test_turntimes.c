/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The turns of a pipeline in time are those of its schedule, in its order, and
 * their parts are the times of the report. */
#include "sim/measure/turntimes.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"

#include <string.h>

static ms_arena arena;
static ms_fault fault;

static const char *const pipelines[] = {
    "pipeline:4",
    "pipeline:3,schedule=gpipe",
    "pipeline:2,chunks=3",
    "pipeline:2,schedule=looped-bfs,chunks=2",
    "pipeline:4,schedule=zb-h1",
    "pipeline:2,schedule=zb-h1,chunks=2",
    "pipeline:4,schedule=zb-h2,layers=4/2/3/3",
    "pipeline:3,schedule=zb-v",
};
static const char *const beside[] = {"", "+checkpoint:full", "+checkpoint:sqrt",
                                     "+zero:1,dp=2"};

/* The row of the schedule that the turns spell, a turn in pieces once. */
static void spell(const ms_turn_time *turns, uint32_t n, ms_text *text)
{
    const ms_turn_time *last = NULL;
    for (uint32_t i = 0; i < n; i++) {
        const ms_turn_time *turn = &turns[i];
        if (turn->kind == MS_TURNTIMES_STEP ||
            (last != NULL && last->kind == turn->kind &&
             last->stage == turn->stage &&
             last->micro_batch == turn->micro_batch))
            continue;
        ms_text_add(text, "%s%u%c%u", last == NULL ? "" : ",",
                    (unsigned)turn->stage, ms_schedule_letters[turn->kind],
                    (unsigned)turn->micro_batch);
        last = turn;
    }
    ms_text_add(text, "\n");
}

static void check_times(const ms_rank_report *rank, const ms_turn_time *turns,
                        uint32_t n)
{
    uint64_t again_ns = 0, step_ns = 0, all_ns = 0, until_ns = 0;
    ms_idle_times idle = ms_times_idle(rank);
    for (uint32_t i = 0; i < n; i++) {
        const ms_turn_time *turn = &turns[i];
        uint64_t ns = turn->to_ns - turn->from_ns;
        ck_assert_uint_gt(turn->to_ns, turn->from_ns);
        ck_assert_uint_ge(turn->from_ns, until_ns);
        ck_assert_uint_ge(ns, turn->again_ns + turn->weight_ns);
        until_ns = turn->to_ns;
        again_ns += turn->again_ns;
        all_ns += ns;
        step_ns += turn->kind == MS_TURNTIMES_STEP ? ns : 0;
    }
    ck_assert_uint_eq(again_ns, rank->time.recompute_ns);
    ck_assert_uint_ge(step_ns, rank->time.optimizer_ns);
    ck_assert_uint_ge(all_ns, idle.busy_ns);
    ck_assert_uint_eq(turns[0].from_ns, rank->first_ns);
    ck_assert_uint_eq(until_ns, rank->last_ns);
}

START_TEST(turns_are_the_schedule)
{
    truth_begin();
    for (size_t b = 0; b < sizeof beside / sizeof *beside; b++) {
        const ms_result *result =
            truth_run("gpt2 --batch 8 --allocator exact -p microbatch:8+%s%s",
                      pipelines[_i], beside[b]);
        ms_text said = {.arena = &arena}, drawn = said;
        ms_dumpschedule_write(result->program, &said);
        for (uint32_t r = 0; r < result->report->n_ranks; r++) {
            ms_turn_time *turns;
            uint32_t n;
            ck_assert(ms_turntimes_measure(result->line, result->program,
                                           (uint16_t)r, &arena, &turns, &n,
                                           &fault) == MS_OK);
            spell(turns, n, &drawn);
            check_times(&result->report->ranks[r], turns, n);
        }
        ck_assert_str_eq(said.bytes, drawn.bytes);
        ms_arena_free(&arena);
    }
    truth_end();
}
END_TEST

Suite *suite_turntimes(void)
{
    Suite *suite = suite_create("turntimes");
    TCase *tcase = tcase_create("turntimes");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, turns_are_the_schedule, 0,
                        sizeof pipelines / sizeof *pipelines);
    suite_add_tcase(suite, tcase);
    return suite;
}
