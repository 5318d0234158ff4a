/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The plane of all ways to checkpoint: what each row says is what the step by
 * itself has, and nothing is below the curve of a measured chain. */
#include "sim/report.h"
#include "tests/inlined.h"
#include "tests/tests.h"
#include "tools/cli/front/front.h"
#include "tools/job/settings.h"

#include <inttypes.h>
#include <string.h>

static ms_arena keep, trial, own;
static ms_fault fault;
static ms_front front;

static void teardown(void)
{
    ms_arena_free(&keep);
    ms_arena_free(&trial);
    ms_arena_free(&own);
}

static void find(const char *model, const char *policy)
{
    ms_points points;
    ms_job job;
    front = (ms_front){0};
    ms_settings_init(&job);
    job.model = model;
    job.training.batch = 8;
    job.allocator = NULL;
    job.allocator_given = true;
    ck_assert_int_eq(ms_spec_parse(policy, &keep, &job.spec, &fault), MS_OK);
    ck_assert_int_eq(ms_points_open(&points, &fault), MS_OK);
    ck_assert_msg(ms_frontfind_rows(&job, &points, NULL, 0, &keep, &front,
                                    &fault) == MS_OK,
                  "%s: %s", fault.where, fault.what);
    ms_points_close(&points);
}

/* Folded or replayed, beside others: the same numbers. */
static void check_row(const char *model, const ms_front_row *row)
{
    ms_result result;
    ms_job job;
    ms_settings_init(&job);
    job.model = model;
    job.training.batch = 8;
    ms_arena_reset(&own);
    ms_arena_reset(&trial);
    ck_assert_int_eq(ms_spec_parse(row->policy, &own, &job.spec, &fault),
                     MS_OK);
    ms_err err = ms_jobway_run(&job, &own, &trial, &result, &fault);
    ck_assert_msg((err == MS_OK) == (row->message == NULL), "%s", row->policy);
    fault = (ms_fault){0};
    if (err != MS_OK)
        return;
    const ms_rank_report *rank = &result.report->ranks[result.report->told];
    ck_assert_msg(rank->peak.allocated_bytes == row->peak_bytes &&
                      rank->time.step_ns == row->step_ns &&
                      rank->time.recompute_ns == row->recompute_ns,
                  "%s: %" PRIu64 " bytes, %" PRIu64 " ns", row->policy,
                  row->peak_bytes, row->step_ns);
}

START_TEST(rows_are_steps)
{
    static const char *const models[][2] = {
        {"gpt2", "none"}, {"unet", "none"}, {"gpt2", "fsdp:dp=4"}};
    const char *model = models[_i][0];
    uint32_t n = 0;
    find(model, models[_i][1]);
    for (uint32_t i = 0; i < front.n; i++) {
        const ms_front_row *row = &front.rows[i];
        check_row(model, row);
        n += row->message == NULL;
        if (row->is_curve && row->message == NULL)
            ck_assert_uint_le(row->peak_bytes, row->budget_bytes);
        if (row->is_above)
            ck_assert_uint_le(front.rows[row->against - 1].peak_bytes,
                              row->peak_bytes);
    }
    ck_assert_uint_gt(n, 25);
    ck_assert_uint_gt(front.n_curve, 5);
}
END_TEST

/* On a chain the solver's model is the step: a plan that is not persistent may
 * be below it, and none of these ways is such a one. */
START_TEST(nothing_is_below_the_curve_of_a_chain)
{
    char path[TESTS_PATH];
    tests_source("tests/golden/files/chain.json", path);
    find(path, "none");
    for (uint32_t i = 0; i < front.n; i++) {
        const ms_front_row *row = &front.rows[i];
        if (row->message != NULL)
            continue;
        if (!row->is_curve)
            ck_assert_msg(row->is_above && row->more_ns >= 0, "%s", row->name);
        else
            ck_assert_msg(row->foreseen_ns == row->step_ns &&
                              row->foreseen_peak_bytes == row->peak_bytes,
                          "%s", row->name);
    }
}
END_TEST

Suite *suite_front(void)
{
    Suite *suite = suite_create("front");
    TCase *tcase = tcase_create("front");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_loop_test(tcase, rows_are_steps, 0, 3);
    tcase_add_test(tcase, nothing_is_below_the_curve_of_a_chain);
    suite_add_tcase(suite, tcase);
    return suite;
}
