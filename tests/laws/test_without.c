/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The thin line of the figure over time is the step without the policies that
 * decide what waits for the backward; there is none where such a step would be
 * the same. */
#include "graphs/model.h"
#include "plots/record/record.h"
#include "policies/common/policy.h"
#include "sim/timeline.h"
#include "tests/tests.h"
#include "tools/advice/leftout.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"

#include <string.h>

static const struct {
    const char *policy, *saving, *left;
} jobs[] = {
    {"checkpoint:sqrt", "checkpoint:sqrt", "none"},
    {"checkpoint:full", "checkpoint:full", "none"},
    {"checkpoint:selective", "checkpoint:selective", "none"},
    {"swap:te=2", "swap:te=2", "none"},
    {"swap:vdnn=all", "swap:vdnn=all", "none"},
    {"swap:checkpoints+checkpoint:full", "swap:checkpoints+checkpoint:full",
     "none"},
    {"fsdp:dp=2+checkpoint:full", "checkpoint:full", "fsdp:dp=2"},
    {"zero:2,dp=2+checkpoint:sqrt+microbatch:2", "checkpoint:sqrt",
     "zero:2,dp=2+microbatch:2"},
    {"none", NULL, NULL},
    {"zero:3,dp=2", NULL, NULL},
    {"offload:optimizer", NULL, NULL},
    {"checkpoint:none", NULL, NULL},
};
#define N_JOBS ((int)(sizeof jobs / sizeof jobs[0]))

static ms_arena keep, trial, other;
static ms_fault fault;
static ms_job job;
static ms_result result;
static ms_record record;

#define MUST(call) ck_assert_msg((call) == MS_OK, "%s", fault.what)

static void setup(void)
{
    keep = trial = other = (ms_arena){0};
    fault = (ms_fault){0};
}

static void teardown(void)
{
    ms_arena_free(&other);
    ms_arena_free(&trial);
    ms_arena_free(&keep);
}

static void set_job(const char *policy, bool has_pool)
{
    static const ms_override small[] = {{"layers", "4"}};
    ms_settings_init(&job);
    job.model = "gpt2";
    job.overrides = small;
    job.n_overrides = 1;
    MUST(ms_settings_put(&job, "batch", "2", &keep, &fault));
    MUST(ms_settings_put(&job, "sequence", "128", &keep, &fault));
    MUST(ms_settings_put(&job, "kernels", "eager", &keep, &fault));
    if (has_pool)
        MUST(ms_settings_put(&job, "allocator", "torch", &keep, &fault));
    MUST(ms_spec_parse(policy, &keep, &job.spec, &fault));
}

static void run_with_line(const char *policy, bool has_pool)
{
    ms_report_names names = {.policy = policy};
    set_job(policy, has_pool);
    MUST(ms_jobway_run(&job, &keep, &trial, &result, &fault));
    MUST(ms_record_of(result.line, result.report, &names, &trial, &record,
                      &fault));
    MUST(ms_leftout_record(&job, &result, &trial, &record, &fault));
}

static void check_ascends(const ms_record_without *of)
{
    ck_assert_uint_gt(of->n, 1);
    ck_assert_uint_eq(of->levels[0].t_ns, 0);
    for (uint32_t i = 1; i < of->n; i++) {
        ck_assert_uint_gt(of->levels[i].t_ns, of->levels[i - 1].t_ns);
        ck_assert_uint_ne(of->levels[i].bytes, of->levels[i - 1].bytes);
    }
    ck_assert_uint_le(of->levels[of->n - 1].t_ns, of->end_ns);
    ck_assert_uint_le(of->n, MS_RECORD_COLUMNS + 2);
}

/* Compares with a run of the other policies, started as a user would. */
static void check_line(int which, bool has_pool)
{
    ms_result alone;
    run_with_line(jobs[which].policy, has_pool);
    if (jobs[which].saving == NULL) {
        ck_assert_ptr_null(record.without);
        return;
    }
    ck_assert_ptr_nonnull(record.without);
    ck_assert_str_eq(record.without->policy, jobs[which].saving);
    check_ascends(record.without);
    set_job(jobs[which].left, has_pool);
    MUST(ms_jobway_run(&job, &other, &other, &alone, &fault));
    const ms_report *report = alone.report;
    ck_assert_uint_eq(record.without->peak_bytes,
                      report->ranks[report->worst].peak.allocated_bytes);
    ck_assert_uint_eq(record.without->end_ns, alone.line->step_ns);
}

START_TEST(the_line_is_the_step_without)
{
    check_line(_i, false);
}
END_TEST

START_TEST(through_a_pool_as_well)
{
    check_line(_i, true);
}
END_TEST

/* Flash attention keeps nothing that selective could drop. */
START_TEST(what_changes_nothing_has_no_line)
{
    set_job("checkpoint:selective", false);
    MUST(ms_settings_put(&job, "kernels", "flash", &keep, &fault));
    MUST(ms_jobway_run(&job, &keep, &trial, &result, &fault));
    record = (ms_record){0};
    MUST(ms_leftout_record(&job, &result, &trial, &record, &fault));
    ck_assert_ptr_null(record.without);
}
END_TEST

START_TEST(it_runs_out_of_memory)
{
    long n = 1;
    ms_err err = MS_ENOMEM;
    run_with_line("checkpoint:full", false);
    for (; err == MS_ENOMEM && n < 100000; n++) {
        ms_record tried = {0};
        fault = (ms_fault){0};
        ms_arena_fail_after(n);
        err = ms_leftout_record(&job, &result, &other, &tried, &fault);
        ms_arena_fail_after(0);
        ck_assert_int_eq(err, fault.err);
    }
    ck_assert_int_eq(err, MS_OK);
    ck_assert_int_gt(n, 3);
}
END_TEST

Suite *suite_without(void)
{
    Suite *suite = suite_create("without");
    TCase *tcase = tcase_create("without");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, the_line_is_the_step_without, 0, N_JOBS);
    tcase_add_loop_test(tcase, through_a_pool_as_well, 0, N_JOBS);
    tcase_add_test(tcase, what_changes_nothing_has_no_line);
    tcase_add_test(tcase, it_runs_out_of_memory);
    suite_add_tcase(suite, tcase);
    return suite;
}
