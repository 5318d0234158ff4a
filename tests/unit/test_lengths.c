/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --lengths: lists, and steps of different lengths through one pool. */
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "sim/pools/steps/pooled.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/lengths.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"

#include <string.h>

#define MAX_WORDS 12

static ms_arena keep, trial;
static ms_fault fault;
static ms_job job;
static ms_result result;

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

static void demand(ms_err err)
{
    ck_assert_msg(err == MS_OK, "%s: %s", fault.where, fault.what);
}

/* A run of tiny-llama with these words, ended by NULL. */
static const ms_pooled *run(const char *const *words)
{
    char path[TESTS_PATH];
    const char *all[MAX_WORDS] = {path};
    ms_arguments arguments;
    uint32_t n = 1;
    tests_source("tests/golden/files/tiny-llama.json", path);
    for (; words[n - 1] != NULL; n++)
        all[n] = words[n - 1];
    demand(ms_options_parse(MS_FOR_RUN, all, n, &keep, &arguments, &fault));
    demand(ms_settings_read(&arguments, &keep, &job, &fault));
    demand(ms_jobway_run(&job, &keep, &trial, &result, &fault));
    return result.report->pooled;
}
#define RUN(...) run((const char *const[]){__VA_ARGS__, NULL})

START_TEST(items)
{
    static const ms_length expected[] = {{0, 512}, {8, 64}, {16, 0}, {0, 1}};
    ms_job of = {0};
    demand(ms_lengths_read("512,8x64,16x,1", &keep, &of, &fault));
    ck_assert_uint_eq(of.lengths->n, 4);
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_int_eq(of.lengths->items[i].batch, expected[i].batch);
        ck_assert_int_eq(of.lengths->items[i].sequence, expected[i].sequence);
    }
    ck_assert(ms_lengths_says(&of, "batch"));
    ck_assert(ms_lengths_says(&of, "sequence"));
    ck_assert(!ms_lengths_says(&of, "precision"));
}
END_TEST

/* Steps go round; the last of them is the one reported. */
START_TEST(goes_round)
{
    ms_job of = {0};
    ms_training training = {.batch = 7};
    ck_assert_uint_eq(ms_lengths_steps(&of), 0);
    demand(ms_lengths_read("512,1024,768", &keep, &of, &fault));
    ck_assert_uint_eq(ms_lengths_steps(&of), 3);
    ms_lengths_set_last(&of, &training);
    ck_assert_int_eq(training.sequence, 768);
    of.steps = 5;
    ms_lengths_set_last(&of, &training);
    ck_assert_int_eq(training.sequence, 1024);
    ms_lengths_set(&of, 3, &training);
    ck_assert_int_eq(training.sequence, 512);
    ck_assert_int_eq(training.batch, 7);
}
END_TEST

START_TEST(one_length_is_as_without)
{
    ms_pooled_rank with =
        RUN("--allocator=torch", "--lengths=64,64,64", "--batch=4")->ranks[0];
    ms_pooled_rank without =
        RUN("--allocator=torch", "--sequence=64", "--batch=4")->ranks[0];
    ck_assert_int_eq(memcmp(&with, &without, sizeof with), 0);
}
END_TEST

/* What a step allocates is what the exact pool says, in whole quanta and with
 * what blocks are larger; and a step that was there before needs nothing. */
START_TEST(each_step_is_its_own)
{
    static const char *const sequences[] = {"--sequence=32", "--sequence=128",
                                            "--sequence=64"};
    uint64_t needed_bytes[3];
    for (int i = 0; i < 3; i++) {
        RUN(sequences[i], "--batch=4");
        needed_bytes[i] = result.report->ranks[0].peak.allocated_bytes;
    }
    const ms_pooled *pooled = RUN("--allocator=torch", "--lengths=32,128,64",
                                  "--batch=4", "--steps=9");
    uint64_t most_bytes = 0;
    ck_assert_uint_eq(pooled->setup.steps, 9);
    for (uint32_t k = 0; k < 9; k++) {
        const ms_pooled_step *step = &pooled->steps[k];
        ck_assert_uint_ge(step->reserved_peak_bytes,
                          step->allocated_peak_bytes);
        if (step->reserved_peak_bytes > most_bytes)
            most_bytes = step->reserved_peak_bytes;
        if (k > 0) { /* the first makes its states */
            ck_assert_uint_ge(step->allocated_peak_bytes, needed_bytes[k % 3]);
            ck_assert_uint_lt(step->allocated_peak_bytes,
                              needed_bytes[k % 3] + needed_bytes[k % 3] / 50);
        }
        if (k >= 6)
            ck_assert_uint_eq(step->device_allocs + step->retries, 0);
        ck_assert_uint_eq(pooled->kinds[k % 3].batch, 4);
    }
    ck_assert_uint_eq(pooled->ranks[0].reserved_most_bytes, most_bytes);
    ck_assert_uint_le(pooled->ranks[0].most_step, 6);
}
END_TEST

/* Batches of other sizes go through the policies' shapes again. */
START_TEST(batches_meet_policies)
{
    const ms_pooled *pooled = RUN("--allocator=torch", "--lengths=4x64,8x64",
                                  "-pmicrobatch:4", "--steps=4");
    ck_assert_uint_eq(result.shape.micro_batches, 4);
    ck_assert_int_eq(result.training.batch, 8);
    ck_assert_uint_lt(pooled->steps[2].allocated_peak_bytes,
                      pooled->steps[3].allocated_peak_bytes);
}
END_TEST

Suite *suite_lengths(void)
{
    Suite *suite = suite_create("lengths");
    TCase *tcase = tcase_create("lengths");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, items);
    tcase_add_test(tcase, goes_round);
    tcase_add_test(tcase, one_length_is_as_without);
    tcase_add_test(tcase, each_step_is_its_own);
    tcase_add_test(tcase, batches_meet_policies);
    suite_add_tcase(suite, tcase);
    return suite;
}
