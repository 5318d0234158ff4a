/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rotary angles continue: a step longer than the positions of the model
 * equals the step of a model made with as many positions. A table of
 * positions ends. */
#include "policies/common/policy.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/lengths.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"

#include <stdio.h>
#include <string.h>

static ms_arena keep, trial;
static ms_fault fault;

static void setup(void)
{
    keep = trial = (ms_arena){0};
    fault = (ms_fault){.caret = -1};
}

static void teardown(void)
{
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}

/* Small models (a file of the tests or a built-in one), a setting of each,
 * and the key of its longest sequence. */
static const struct {
    const char *model, *small, *positions;
    bool ends;
} models[] = {
    {"tests/golden/files/tiny-llama.json", "model.layers=2",
     "model.positions=%d", false},
    {"tests/golden/files/hf-llama.json", "model.num_hidden_layers=2",
     "model.max_position_embeddings=%d", false},
    {"qwen3-0.6b", "model.layers=2", "model.positions=%d", false},
    {"deepseek-v2-lite", "model.layers=2", "model.positions=%d", false},
    {"tests/golden/files/tiny.json", "model.layers=2", "model.positions=%d",
     true},
    {"opt-125m", "model.layers=2", "model.positions=%d", true},
    {"mpt-7b", "model.layers=1", "model.positions=%d", true},
};
#define N_MODELS (sizeof models / sizeof *models)
static const char *const kernels[] = {"eager", "flash", "efficient", "fused",
                                      "megatron"};
#define N_KERNELS ((int)(sizeof kernels / sizeof *kernels))

#define POSITIONS 96
#define SEQUENCE 160

/* Runs a step of SEQUENCE on a model with so many positions. */
static ms_err step(size_t m, const char *kernel, int positions,
                   ms_result *result)
{
    char path[TESTS_PATH], longest[64];
    const char *words[] = {models[m].model,
                           "--kernels",
                           kernel,
                           "--sequence",
                           "160",
                           "--set",
                           models[m].small,
                           "--set",
                           longest,
                           "--batch=2",
                           "--allocator=exact"};
    ms_arguments arguments;
    ms_job job;
    if (strncmp(models[m].model, "tests/", 6) == 0) {
        tests_source(models[m].model, path);
        words[0] = path;
    }
    snprintf(longest, sizeof longest, models[m].positions, positions);
    fault = (ms_fault){.caret = -1};
    ms_err err =
        ms_options_parse(MS_FOR_RUN, words, 11, &keep, &arguments, &fault);
    if (err == MS_OK)
        err = ms_settings_read(&arguments, &keep, &job, &fault);
    if (err == MS_OK)
        err = ms_jobway_run(&job, &keep, &trial, result, &fault);
    return err;
}

START_TEST(beyond_is_as_made_for_it)
{
    const char *kernel = kernels[_i];
    for (size_t m = 0; m < N_MODELS; m++) {
        ms_result beyond, made;
        ms_err err = step(m, kernel, SEQUENCE, &made);
        if (err == MS_EUSAGE || err == MS_EINPUT)
            continue; /* these kernels do not have such layers */
        ck_assert_msg(err == MS_OK, "%s: %s", models[m].model, fault.what);
        err = step(m, kernel, POSITIONS, &beyond);
        ck_assert_msg((err != MS_OK) == models[m].ends, "%s %s: %s",
                      models[m].model, kernel, fault.what);
        if (models[m].ends) {
            ck_assert_ptr_nonnull(strstr(fault.what, "positions of"));
            continue;
        }
        ck_assert_uint_eq(beyond.model.max_sequence, POSITIONS);
        ck_assert_msg(beyond.report->ranks[0].peak.allocated_bytes ==
                              made.report->ranks[0].peak.allocated_bytes &&
                          beyond.line->step_ns == made.line->step_ns,
                      "%s with %s", models[m].model, kernel);
        teardown();
        setup();
    }
}
END_TEST

Suite *suite_positions(void)
{
    Suite *suite = suite_create("positions");
    TCase *tcase = tcase_create("positions");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, beyond_is_as_made_for_it, 0, N_KERNELS);
    suite_add_tcase(suite, tcase);
    return suite;
}
