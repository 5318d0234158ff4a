/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stages side by side: how long each is idle, what each recomputes, and what is
 * advised to even them out. */
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/advice/evenout.h"

#include <stdio.h>
#include <string.h>

static ms_arena arena;
static ms_fault fault;

static const char *const pipelines[] = {
    "pipeline:4",
    "pipeline:3,schedule=gpipe",
    "pipeline:2,chunks=3",
    "pipeline:4,schedule=zb-h1",
    "pipeline:4,schedule=zb-h2,layers=4/2/3/3",
    "pipeline:3,schedule=zb-v",
};

/* A rank is busy or idle for all of the makespan; its own span lies within, and
 * it is busy for no longer than that. */
START_TEST(busy_and_idle_are_the_makespan)
{
    truth_begin();
    for (size_t i = 0; i < sizeof pipelines / sizeof *pipelines; i++) {
        const ms_report *report =
            truth_run("gpt2 --batch 8 -p microbatch:8+%s", pipelines[i])
                ->report;
        uint64_t first_ns = UINT64_MAX, last_ns = 0;
        for (uint32_t r = 0; r < report->n_ranks; r++) {
            const ms_rank_report *rank = &report->ranks[r];
            ms_idle_times idle = ms_times_idle(rank);
            ck_assert_uint_eq(idle.busy_ns + idle.idle_ns, rank->time.step_ns);
            ck_assert_uint_eq(idle.busy_ns + idle.span_idle_ns, idle.span_ns);
            ck_assert_uint_eq(idle.span_ns, rank->last_ns - rank->first_ns);
            ck_assert_uint_le(rank->last_ns, rank->time.step_ns);
            first_ns = rank->first_ns < first_ns ? rank->first_ns : first_ns;
            last_ns = rank->last_ns > last_ns ? rank->last_ns : last_ns;
        }
        ck_assert_uint_eq(last_ns, report->ranks[0].time.step_ns);
        ck_assert_uint_eq(first_ns, report->ranks[0].first_ns);
    }
    truth_end();
}
END_TEST

/* One number for all stages is that number for each of them; a stage that is
 * given 0 recomputes nothing, and what one recomputes is not another's. */
START_TEST(stages_recompute_apart)
{
    uint64_t peak[3], again_ns[3];
    static const char *const lists[] = {"2", "2/2/2/2", "2/0/1/0"};
    truth_begin();
    for (size_t i = 0; i < 3; i++) {
        const ms_report *report =
            truth_run("gpt2 --batch 8 -p microbatch:8+pipeline:4+"
                      "checkpoint:first=%s",
                      lists[i])
                ->report;
        peak[i] = report->ranks[report->worst].peak.allocated_bytes;
        again_ns[i] = report->ranks[0].time.recompute_ns;
        if (i < 2)
            continue;
        ck_assert_uint_eq(report->ranks[1].time.recompute_ns, 0);
        ck_assert_uint_gt(report->ranks[2].time.recompute_ns, 0);
        ck_assert_uint_lt(report->ranks[2].time.recompute_ns, again_ns[0]);
        ck_assert_uint_eq(report->ranks[3].time.recompute_ns, 0);
    }
    ck_assert_uint_eq(peak[0], peak[1]);
    ck_assert_uint_eq(again_ns[0], again_ns[1]);
    ck_assert_uint_eq(again_ns[0], again_ns[2]);
    truth_end();
}
END_TEST

/* What is said of a way is what its command says, and it is worth a line. */
static void check_ways(const char *words)
{
    ms_evenout even;
    ck_assert(ms_evenout_find(truth_job(),
                              truth_run("gpt2 --batch 8 -p microbatch:8+%s "
                                        "--allocator exact",
                                        words),
                              &arena, &even, &fault) == MS_OK);
    for (uint32_t i = 0; i < even.n; i++) {
        const ms_evenout_way *way = &even.ways[i];
        const ms_report *report =
            truth_run("gpt2 --batch 8 --allocator exact -p %s", way->policy)
                ->report;
        const ms_rank_report *rank = &report->ranks[report->worst];
        ck_assert_msg(rank->peak.allocated_bytes == way->peak_bytes &&
                          rank->time.step_ns == way->step_ns,
                      "%s: %llu bytes, %llu ns; told %llu, %llu", way->policy,
                      (unsigned long long)rank->peak.allocated_bytes,
                      (unsigned long long)rank->time.step_ns,
                      (unsigned long long)way->peak_bytes,
                      (unsigned long long)way->step_ns);
        ck_assert(way->peak_bytes < even.peak_bytes ||
                  way->step_ns < even.step_ns);
    }
}

START_TEST(ways_are_what_their_commands_say)
{
    truth_begin();
    for (size_t i = 0; i < sizeof pipelines / sizeof *pipelines; i++)
        check_ways(pipelines[i]);
    check_ways("pipeline:4,layers=6/2/2/2");
    ms_arena_free(&arena);
    truth_end();
}
END_TEST

/* The first stage has most layers, micro-batches and work: it gives some. */
START_TEST(a_full_stage_gives_layers)
{
    ms_evenout even;
    truth_begin();
    const ms_result *result =
        truth_run("gpt2 --batch 8 --allocator exact -p "
                  "microbatch:8+pipeline:4,layers=6/2/2/2");
    ck_assert(ms_evenout_find(truth_job(), result, &arena, &even, &fault) ==
              MS_OK);
    ck_assert_uint_gt(even.n, 1);
    ck_assert_ptr_nonnull(strstr(even.ways[0].policy, "layers="));
    ck_assert_uint_lt(even.ways[0].peak_bytes, even.peak_bytes);
    ck_assert_ptr_nonnull(
        strstr(even.ways[even.n - 1].policy, "checkpoint:first=6/0/0/0"));
    ck_assert(ms_evenout_find(truth_job(), truth_run("gpt2"), &arena, &even,
                              &fault) == MS_OK);
    ck_assert_uint_eq(even.n, 0);
    ms_arena_free(&arena);
    truth_end();
}
END_TEST

Suite *suite_evenout(void)
{
    Suite *suite = suite_create("evenout");
    TCase *tcase = tcase_create("evenout");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, busy_and_idle_are_the_makespan);
    tcase_add_test(tcase, stages_recompute_apart);
    tcase_add_test(tcase, ways_are_what_their_commands_say);
    tcase_add_test(tcase, a_full_stage_gives_layers);
    suite_add_tcase(suite, tcase);
    return suite;
}
