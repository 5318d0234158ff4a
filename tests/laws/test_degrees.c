/* SPDX-License-Identifier: GPL-3.0-or-later */
/* fit over pipelines: what it passes over by bounds, and what it tells from few
 * micro-batches, changes no answer: a search that replays every set-up finds
 * the same fastest and best one, and no bound is above what a replay says.
 *
 * fit over degrees: where ranks share samples, a step trains fewer of them, or
 * each rank has more of them where their number is the job's.  Set-ups are
 * compared over the same tokens. */
#include "sim/report.h"
#include "tests/laws/hall.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"
#include "tools/search/fit.h"

#include <string.h>

#define GPUS 4u
#define SAMPLES                                                                \
    8u /* of a step of all ranks: 4 x 2, or as --global-batch says */
#define TOKENS 8192u

#define MUST(call) HALL_MUST("degrees", call)

static void search(const char *batch, hall *h, ms_job *job, ms_fit *fit)
{
    const char *const words[] = {
        "gpt3-small", "--set=model.layers=2", "--set=model.positions=8192",
        "--gpus=4",   "--sequence=8192",      batch,
        NULL};
    hall_open(MS_FOR_FIT, words, "degrees", h);
    MUST(ms_settings_read(&h->arguments, &h->keep, job, &hall_fault));
    *fit = (ms_fit){.job = job,
                    .points = &h->points,
                    .arena = &h->keep,
                    .threads = 1,
                    .goal = MS_FIT_STEP};
    for (uint32_t a = 0; a < MS_FIT_N_AXES; a++)
        fit->frozen[a] = ms_fitchoices_all[a].key != NULL;
    MUST(ms_fitspace_open(fit, &hall_fault));
    MUST(ms_fitsearch_run(fit, &hall_fault));
}

static void check_tokens(const ms_fit_point *point)
{
    double steps_s = (double)ms_fitjudge_cost(point) / 1e9;
    ck_assert_double_eq_tol(point->tokens_per_second * steps_s,
                            SAMPLES * TOKENS, 1);
}

START_TEST(the_same_tokens)
{
    static const char *const batches[] = {"--global-batch=8", "--batch=2"};
    hall h;
    ms_job job;
    ms_fit fit;
    uint32_t replayed[GPUS + 1] = {0};
    search(batches[_i], &h, &job, &fit);
    for (uint32_t i = 0; i < fit.n_all; i++) {
        const ms_fit_point *point = &fit.all[i];
        uint32_t degree = ms_fitsetup_degree(&fit, point);
        ck_assert_uint_eq(GPUS % degree, 0);
        ck_assert_uint_eq(point->weight, _i == 0 ? 1 : degree);
        if (point->state != MS_FIT_REPLAYED)
            continue;
        replayed[degree]++;
        check_tokens(point);
    }
    ck_assert(replayed[1] > 0 && replayed[2] > 0 && replayed[4] > 0);
    ms_fitspace_close(&fit);
    hall_close(&h);
}
END_TEST

/* ---- pipelines ----------------------------------------------------------- */

#define MOST_WORDS 12u

static const char *const jobs[][MOST_WORDS] = {
    {"gpt3-small", "--set=model.layers=4", "--gpus=4", "--sequence=512",
     "--global-batch=16"},
    {"gpt3-small", "--set=model.layers=4", "--gpus=4", "--sequence=512",
     "--global-batch=16", "--memory=3GiB", "-p", "zero:1"},
    {"gpt3-small", "--set=model.layers=6", "--gpus=2", "--sequence=256",
     "--global-batch=24", "--memory=2560MiB", "-p", "ddp"},
    {"tests/golden/files/tiny-llama.json", "--gpus=4", "--global-batch=32",
     "-p", "ddp"},
    {"mixtral-8x7b", "--set=model.layers=2", "--gpus=4", "--sequence=256",
     "--global-batch=8", "-p", "zero:1"},
};
#define N_JOBS ((int)(sizeof jobs / sizeof jobs[0]))

static void search_pipelines(int i, bool exhaustive, ms_fit_goal goal, hall *h,
                             ms_job *job, ms_fit *fit)
{
    const char *words[MOST_WORDS];
    char path[TESTS_PATH];
    memcpy(words, jobs[i], sizeof words);
    if (strchr(words[0], '/') != NULL)
        words[0] = (tests_source(words[0], path), path);
    hall_open(MS_FOR_FIT, words, "degrees", h);
    MUST(ms_settings_read(&h->arguments, &h->keep, job, &hall_fault));
    *fit = (ms_fit){.job = job,
                    .points = &h->points,
                    .arena = &h->keep,
                    .threads = 1,
                    .exhaustive = exhaustive,
                    .goal = goal};
    for (uint32_t a = 0; a < MS_FIT_N_AXES; a++)
        fit->frozen[a] = ms_fitchoices_all[a].key != NULL ||
                         a == MS_FIT_OFFLOAD || a == MS_FIT_SWAP;
    MUST(ms_fitspace_open(fit, &hall_fault));
    MUST(ms_fitsearch_run(fit, &hall_fault));
}

/* Set-ups that come out as others are passed over: so by numbers. */
static void check_same(const ms_fit *all, uint32_t a, const ms_fit *few,
                       uint32_t b)
{
    ck_assert_int_eq(a == MS_NONE, b == MS_NONE);
    if (a == MS_NONE)
        return;
    ck_assert_uint_eq(few->all[b].step_ns, all->all[a].step_ns);
    ck_assert_uint_eq(few->all[b].reserved_bytes, all->all[a].reserved_bytes);
}

static void check_bounds(const ms_fit *fit, uint32_t *piped)
{
    for (uint32_t i = 0; i < fit->n_all; i++) {
        const ms_fit_point *point = &fit->all[i];
        if (point->state != MS_FIT_REPLAYED)
            continue;
        *piped += point->option[MS_FIT_PIPELINE] > 0;
        ck_assert_uint_le(point->bound.peak_bytes, point->peak_bytes);
        ck_assert_uint_le(point->bound.step_ns, point->step_ns);
    }
}

START_TEST(pipelines_by_bounds)
{
    static const ms_fit_goal goals[] = {MS_FIT_TOKENS, MS_FIT_MEMORY};
    hall h, h_few;
    ms_job job, job_few;
    ms_fit all, few;
    uint32_t piped = 0, piped_few = 0;
    search_pipelines(_i / 2, true, goals[_i % 2], &h, &job, &all);
    search_pipelines(_i / 2, false, goals[_i % 2], &h_few, &job_few, &few);
    check_bounds(&all, &piped);
    check_bounds(&few, &piped_few);
    if (all.goal == MS_FIT_TOKENS)
        check_same(&all, all.fastest, &few, few.fastest);
    check_same(&all, all.best, &few, few.best);
    ck_assert_uint_gt(piped, 0);
    ck_assert_uint_lt(few.count[MS_FIT_REPLAYED], all.count[MS_FIT_REPLAYED]);
    ms_fitspace_close(&few);
    ms_fitspace_close(&all);
    hall_close(&h_few);
    hall_close(&h);
}
END_TEST

Suite *suite_degrees(void)
{
    Suite *suite = suite_create("degrees");
    TCase *tcase = tcase_create("degrees");
    tcase_add_loop_test(tcase, the_same_tokens, 0, 2);
    suite_add_tcase(suite, tcase);
    tcase = tcase_create("pipelines");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, pipelines_by_bounds, 0, 2 * N_JOBS);
    suite_add_tcase(suite, tcase);
    return suite;
}
