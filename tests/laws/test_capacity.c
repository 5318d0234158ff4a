/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Three memories, one verdict: a step fits when each memory has exactly what it
 * needs, and when one has a byte less, run, compare, sweep and fit all say that
 * this memory is too small by a byte. */
#include "policies/common/policy.h"
#include "sim/names.h"
#include "sim/report.h"
#include "tests/laws/hall.h"
#include "tools/cli/commands.h"
#include "tools/cli/sweep/sweep.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"
#include "tools/search/fit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const shares[] = {
    "none",        "zero:1,dp=4,impl=megatron",  "zero:2,dp=3",
    "zero:3,dp=4", "zero:2,dp=2,impl=deepspeed", "zero:3,dp=16,impl=deepspeed",
    "fsdp:dp=4"};
static const char *const swaps[] = {"",
                                    "+swap:save_on_cpu",
                                    "+swap:vdnn=all",
                                    "+swap:te=1+checkpoint:every=2",
                                    "+swap:torchtune",
                                    "+swap:layers",
                                    "+swap:checkpoints+checkpoint:full"};
static const char *const offloads[] = {
    "",
    "+offload:optimizer",
    "+offload:optimizer/gradients,pin=0",
    "+offload:optimizer,impl=deepspeed",
    "+offload:optimizer/params/gradients,to=nvme,tile=100",
    "+offload:optimizer/params/gradients,gradients_to=nvme"};
#define MANY(list) (sizeof(list) / sizeof *(list))
#define N_POLICIES ((int)(MANY(shares) * MANY(swaps) * MANY(offloads)))
#define PART 14 /* of the policies, in one test */

static char policy[256], model[TESTS_PATH];

#define MUST(call) HALL_MUST(policy, call)

/* What the step needs of each memory, by ms_pool_kind. */
typedef struct needs {
    uint64_t bytes[MS_N_POOLS];
} needs;

static void name_policy(int i)
{
    size_t at = (size_t)i;
    snprintf(policy, sizeof policy, "%s%s%s", shares[at % MANY(shares)],
             swaps[at / MANY(shares) % MANY(swaps)],
             offloads[at / MANY(shares) / MANY(swaps)]);
}

/* ---- run ----------------------------------------------------------------- */

/* False: the policies contradict each other. */
static bool find_needs(needs *need)
{
    const char *const words[] = {model, "-p", policy, NULL};
    ms_points_seat seat = {0};
    ms_result result;
    ms_job job;
    hall h;
    hall_open(MS_FOR_RUN, words, policy, &h);
    MUST(ms_settings_read(&h.arguments, &h.keep, &job, &hall_fault));
    ms_err err = ms_points_step(&h.points, &seat, &job, &result, &hall_fault);
    ck_assert(err == MS_OK || err == MS_EUSAGE);
    if (err == MS_OK) {
        const ms_report *report = result.report;
        ck_assert(report->fits);
        need->bytes[MS_DEVICE_POOL] = ms_capacity_used(report);
        for (int pool = MS_HOST_POOL; pool < MS_N_POOLS; pool++) {
            const struct ms_far_memory *far = &report->far[pool];
            ck_assert_uint_ge(far->reserved_bytes, far->peak_bytes);
            ck_assert_uint_le(far->pinned_bytes, far->reserved_bytes);
            need->bytes[pool] = far->node_reserved_bytes;
        }
    }
    ms_points_leave(&h.points, &seat);
    hall_close(&h);
    return err == MS_OK;
}

/* A memory that the step does not use gets one byte, which is enough. */
static bool can_lack(const needs *need, int pool)
{
    return need->bytes[pool] > 1;
}

static void check_report(const ms_report *report, const needs *need,
                         const bool *lacks)
{
    bool any = false;
    for (int pool = 0; pool < MS_N_POOLS; pool++) {
        bool lack = lacks[pool] && can_lack(need, pool);
        ck_assert_uint_eq(ms_capacity_short(report, (ms_pool_kind)pool), lack);
        any |= lack;
    }
    ck_assert_msg(report->fits == !any, "%s", policy);
    ck_assert_int_eq(report->status, any ? MS_OVER : MS_FITS);
    ck_assert(report->headroom_bytes == (lacks[MS_DEVICE_POOL] ? -1 : 0));
}

/* Which memories lack a byte at a point of the grid; the last one varies
 * fastest. */
static void lacks_of(uint32_t point, bool *lacks)
{
    for (int pool = MS_N_POOLS - 1; pool >= 0; pool--, point /= 2)
        lacks[pool] = point % 2 == 1;
}
#define POINTS 8u

/* ---- compare, sweep, fit ------------------------------------------------- */

/* "--grid=memory=8000000,7999999" */
static const char *grid_words(const needs *need, int pool, char *words,
                              size_t size)
{
    static const char *const keys[] = {"memory", "host_memory", "nvme"};
    uint64_t bytes = need->bytes[pool];
    if (can_lack(need, pool))
        snprintf(words, size, "--grid=%s=%" PRIu64 "B,%" PRIu64 "B", keys[pool],
                 bytes, bytes - 1);
    else
        snprintf(words, size, "--grid=%s=1B,2B", keys[pool]);
    return words;
}

static void check_compare(const needs *need)
{
    char grids[MS_N_POOLS][96];
    const char *words[] = {model, "-p",          policy,  NULL, NULL,
                           NULL,  "--allocator", "exact", NULL};
    ms_comparison c = {0};
    bool lacks[MS_N_POOLS];
    hall h;
    for (int pool = 0; pool < MS_N_POOLS; pool++)
        words[3 + pool] = grid_words(need, pool, grids[pool], 96);
    hall_open(MS_FOR_COMPARE, words, policy, &h);
    const ms_hall inner = {&h.arguments, &h.keep, &h.trial, NULL};
    MUST(ms_variants_read(&inner, &h.points, &c, &hall_fault));
    MUST(
        ms_variants_fill(&inner, &h.points, MS_VARIANTS_JSON, &c, &hall_fault));
    ck_assert_uint_eq(c.n, POINTS);
    for (uint32_t i = 0; i < c.n; i++) {
        lacks_of(i, lacks);
        ck_assert(c.variants[i].refused == NULL);
        check_report(&c.variants[i].record.report, need, lacks);
    }
    ms_variants_close(&h.points, &c);
    hall_close(&h);
}

static bool any_lacks(const needs *need, uint32_t point)
{
    bool lacks[MS_N_POOLS], any = false;
    lacks_of(point, lacks);
    for (int pool = 0; pool < MS_N_POOLS; pool++)
        any |= lacks[pool] && can_lack(need, pool);
    return any;
}

static void check_sweep(const needs *need)
{
    char grids[MS_N_POOLS][96];
    const char *words[] = {model, "-p", policy, NULL, NULL, NULL, NULL};
    ms_points_seat seat = {0};
    ms_outcome outcome;
    ms_grid grid;
    ms_job base;
    hall h;
    for (int pool = 0; pool < MS_N_POOLS; pool++)
        words[3 + pool] = grid_words(need, pool, grids[pool], 96);
    hall_open(MS_FOR_SWEEP, words, policy, &h);
    MUST(ms_settings_read(&h.arguments, &h.keep, &base, &hall_fault));
    MUST(ms_grid_read(&h.arguments, &base, &h.keep, &grid, &hall_fault));
    const ms_sweep sweep = {.grid = &grid, .base = &base, .n = POINTS};
    for (uint32_t i = 0; i < POINTS; i++) {
        bool any = any_lacks(need, i);
        MUST(ms_sweep_item(&sweep, i, &h.points, &seat, &h.trial, &outcome));
        ck_assert_int_eq(outcome.fault.err, MS_OK);
        ck_assert_msg(outcome.row.fits == !any, "%s: point %u", policy, i);
        ck_assert_int_eq(outcome.status, any ? MS_OVER : MS_FITS);
    }
    ms_points_leave(&h.points, &seat);
    hall_close(&h);
}

/* The first set-up of fit is that with these policies and nothing else. */
static void check_fit(const needs *need, uint32_t point)
{
    static const char *const options[] = {"memory", "host-memory", "nvme"};
    char sizes[MS_N_POOLS][64];
    const char *words[] = {model, "-p", policy, NULL, NULL, NULL, NULL};
    const uint32_t plain = 0;
    bool lacks[MS_N_POOLS];
    ms_job job;
    hall h;
    lacks_of(point, lacks);
    for (int pool = 0; pool < MS_N_POOLS; pool++) {
        uint64_t bytes = can_lack(need, pool) ? need->bytes[pool] : 2;
        snprintf(sizes[pool], sizeof sizes[pool], "--%s=%" PRIu64 "B",
                 options[pool], bytes - lacks[pool]);
        words[3 + pool] = sizes[pool];
    }
    hall_open(MS_FOR_FIT, words, policy, &h);
    MUST(ms_settings_read(&h.arguments, &h.keep, &job, &hall_fault));
    ms_fit fit = {.job = &job, .points = &h.points, .arena = &h.keep};
    MUST(ms_fitspace_open(&fit, &hall_fault));
    MUST(ms_fitsearch_replay(&fit, &plain, 1, false, &hall_fault));
    ck_assert_int_eq(fit.all[0].state, MS_FIT_REPLAYED);
    ck_assert_msg(fit.all[0].fits == !any_lacks(need, point), "%s: %u", policy,
                  point);
    ck_assert_uint_eq(fit.all[0].host_short_bytes,
                      lacks[MS_HOST_POOL] && can_lack(need, MS_HOST_POOL));
    ck_assert_uint_eq(fit.all[0].nvme_short_bytes,
                      lacks[MS_NVME_POOL] && can_lack(need, MS_NVME_POOL));
    ms_fitspace_close(&fit);
    hall_close(&h);
}

START_TEST(one_verdict)
{
    int ran = 0;
    tests_source("tests/golden/files/tiny16.json", model);
    for (int i = _i * PART; i < (_i + 1) * PART && i < N_POLICIES; i++) {
        needs need;
        name_policy(i);
        if (!find_needs(&need))
            continue;
        ran++;
        check_compare(&need);
        check_sweep(&need);
        check_fit(&need, (uint32_t)i % POINTS);
    }
    ck_assert_int_gt(4 * ran, PART);
}
END_TEST

Suite *suite_capacity(void)
{
    Suite *suite = suite_create("capacity");
    TCase *tcase = tcase_create("capacity");
    tcase_add_loop_test(tcase, one_verdict, 0, (N_POLICIES + PART - 1) / PART);
    suite_add_tcase(suite, tcase);
    return suite;
}
