/* SPDX-License-Identifier: GPL-3.0-or-later */
/* fit over degrees: where ranks share samples, a step trains fewer of them, or
 * each rank has more of them where their number is the job's.  Set-ups are
 * compared over the same tokens. */
#include "sim/report.h"
#include "tests/laws/hall.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"
#include "tools/search/fit.h"

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
    double steps_s = (double)ms_fitsearch_cost(point) / 1e9;
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

Suite *suite_degrees(void)
{
    Suite *suite = suite_create("degrees");
    TCase *tcase = tcase_create("degrees");
    tcase_add_loop_test(tcase, the_same_tokens, 0, 2);
    suite_add_tcase(suite, tcase);
    return suite;
}
