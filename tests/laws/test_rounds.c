/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A pipeline of many micro-batches is told from few: of every rank the peak,
 * allocated and active, and each part of the time are those of the step with
 * all of them, for every order, beside every policy that stands beside it. */
#include "policies/common/policy.h"
#include "sim/machine.h"
#include "sim/repeat/rounds.h"
#include "sim/timeline.h"
#include "tests/inlined.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"

#include <stdio.h>
#include <string.h>

#define MANY(list) (sizeof(list) / sizeof *(list))

static const char *const orders[] = {
    "pipeline:2",
    "pipeline:4",
    "pipeline:4,overlap=1",
    "pipeline:3,layers=2/3/7",
    "pipeline:4,schedule=interleaved,chunks=2",
    "pipeline:2,schedule=interleaved,chunks=3",
    "pipeline:3,schedule=zb-h1",
    "pipeline:4,schedule=zb-h2",
    "pipeline:2,schedule=zb-h1,chunks=2",
    "pipeline:3,schedule=zb-v",
    "pipeline:4,schedule=gpipe",
    "pipeline:2,schedule=looped-bfs,chunks=2",
};
static const char *const beside[] = {"",
                                     "+checkpoint:sqrt",
                                     "+checkpoint:full,variant=reentrant",
                                     "+checkpoint:every=2",
                                     "+ddp:dp=4",
                                     "+zero:1,dp=2",
                                     "+zero:2,dp=3+checkpoint:full"};
static const uint32_t counts[] = {120, 168, 240};
/* the hosts are behind their devices, or ahead of them */
static const uint32_t samples[] = {1, 512};

static const char *const models[] = {
    "{\"memsim\": 1, \"family\": \"decoder\", \"config\": {\"layers\": 12, "
    "\"hidden\": 32, \"heads\": 2, \"vocab\": 100, \"positions\": 16}}",
    "{\"memsim\": 1, \"name\": \"mlp\", \"input\": {\"shape\": [32]}, "
    "\"layers\": [{\"repeat\": 12, \"name\": \"h\", \"layers\": ["
    "{\"type\": \"linear\", \"out\": 32}, {\"type\": \"dropout\"}, "
    "{\"type\": \"gelu\"}]}, {\"type\": \"mean\"}]}",
};

static ms_arena keep, trial;

/* Padding counts for nothing: both were filled field by field from zeros. */
static void check_rank(const char *policy, const ms_rank_report *told,
                       const ms_rank_report *whole)
{
    const void *a = &told->time, *b = &whole->time;
    ck_assert_msg(told->peak.allocated_bytes == whole->peak.allocated_bytes,
                  "%s: rank %u", policy, (unsigned)whole->rank);
    ck_assert_msg(told->peak.reserved_bytes == whole->peak.reserved_bytes,
                  "%s: rank %u: %llu for %llu active", policy,
                  (unsigned)whole->rank,
                  (unsigned long long)told->peak.reserved_bytes,
                  (unsigned long long)whole->peak.reserved_bytes);
    ck_assert_msg(memcmp(a, b, sizeof told->time) == 0, "%s: rank %u", policy,
                  (unsigned)whole->rank);
}

/* 0: it was refused; 1: its rounds do not repeat; 2: they do. */
static int try_policy(const char *json, const char *policy, uint64_t batch)
{
    ms_fault fault = {0};
    ms_job job;
    ms_result few = {0}, all;
    ms_rank_report *told;
    ms_settings_init(&job);
    job.training.batch = (int64_t)batch;
    if (inlined_lower(json, policy, &job, &keep, &few, &fault) != MS_OK)
        return 0;
    all = few;
    job.whole_ops = UINT64_MAX;
    if (ms_jobway_step(&job, &trial, &all, &fault) != MS_OK)
        return 0;
    ck_assert_int_eq(ms_pipelinerounds_step(&job, &trial, &few, &told, &fault),
                     MS_OK);
    if (told == NULL)
        return 1;
    for (uint16_t r = 0; r < all.report->n_ranks; r++)
        check_rank(policy, &told[r], &all.report->ranks[r]);
    return 2;
}

START_TEST(rounds_are_what_all_are)
{
    size_t n[3] = {0}, of_order[MANY(orders)] = {0};
    for (size_t i = 0; i < MANY(orders) * MANY(beside) * MANY(samples); i++) {
        size_t order = i % MANY(orders), with = i / MANY(orders);
        uint32_t count = counts[(order + with) % MANY(counts)];
        char policy[160];
        snprintf(policy, sizeof policy, "microbatch:%u+%s%s", count,
                 orders[order], beside[with % MANY(beside)]);
        int answer = try_policy(models[(order + with) % MANY(models)], policy,
                                count * samples[with / MANY(beside)]);
        n[answer]++;
        of_order[order] += answer == 2;
        ms_arena_reset(&keep);
        ms_arena_reset(&trial);
    }
    /* All in flight at once: no round is like the one before. */
    ck_assert_uint_eq(of_order[MANY(orders) - 1], 0);
    ck_assert_uint_eq(of_order[MANY(orders) - 2], 0);
    ck_assert_uint_gt(n[2], n[1]);
    for (size_t i = 0; i < MANY(orders) - 2; i++)
        ck_assert_msg(of_order[i] > 0, "%s", orders[i]);
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}
END_TEST

Suite *suite_rounds(void)
{
    Suite *suite = suite_create("rounds");
    TCase *tcase = tcase_create("rounds");
    tcase_set_timeout(tcase, 240);
    tcase_add_test(tcase, rounds_are_what_all_are);
    suite_add_tcase(suite, tcase);
    return suite;
}
