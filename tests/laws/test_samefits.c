/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The same settings give one answer: near the capacity at which a step begins
 * to fit, run, compare, fit and a sweep through the allocator agree. A sweep
 * without an allocator reports fits_exact instead, of the live bytes, which is
 * what run says with --allocator exact. Where run has no pool either, a sweep
 * reports fits. */
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

static const char *const set_ups[][2] = {
    {"tests/golden/files/tiny16.json", "none"},
    {"tests/golden/files/tiny16.json", "checkpoint:full"},
    {"tests/golden/files/tiny16.json", "checkpoint:sqrt+microbatch:2"},
    {"tests/golden/files/tiny16.json", "zero:3,dp=4"},
    {"tests/golden/files/tiny16.json", "swap:save_on_cpu"},
    {"tests/golden/files/mlp.json", "offload:optimizer"},
    {"tests/golden/files/tiny-llama.json", "fsdp:dp=2+checkpoint:full"},
    {"tests/golden/files/mlp.json", "none"},
};
#define N_SET_UPS ((int)(sizeof set_ups / sizeof set_ups[0]))
#define N_SIZES 7u
#define MOST_WORDS 10u

static char model[TESTS_PATH];
static const char *policy;

#define MUST(call) HALL_MUST(policy, call)

/* ---- each command's answer ----------------------------------------------- */

/* extra: one more option, or NULL. used_bytes: what nvidia-smi would show. */
static bool run_fits(uint64_t memory_bytes, const char *extra,
                     uint64_t *used_bytes)
{
    char memory[48];
    const char *const words[MOST_WORDS] = {model,  "--batch=4", "-p",
                                           policy, memory,      extra};
    ms_result result;
    ms_job job;
    hall h;
    snprintf(memory, sizeof memory, "--memory=%" PRIu64, memory_bytes);
    hall_open(MS_FOR_RUN, words, policy, &h);
    MUST(ms_settings_usual(&h.arguments, &h.keep, &job, &hall_fault));
    MUST(ms_jobway_run(&job, &h.keep, &h.trial, &result, &hall_fault));
    bool fits = result.report->fits;
    if (used_bytes != NULL)
        *used_bytes = ms_capacity_used(result.report);
    ck_assert_int_eq(result.report->status == MS_FITS, fits);
    hall_close(&h);
    return fits;
}

/* "--grid=memory=...": all sizes. */
static void put_grid(const uint64_t *sizes, char *grid, size_t size)
{
    size_t length = (size_t)snprintf(grid, size, "--grid=memory=");
    for (uint32_t i = 0; i < N_SIZES; i++)
        length += (size_t)snprintf(grid + length, size - length, "%s%" PRIu64,
                                   i > 0 ? "," : "", sizes[i]);
    ck_assert_uint_lt(length, size);
}

static void compare_fits(const uint64_t *sizes, bool *fits)
{
    char grid[256];
    const char *const words[MOST_WORDS] = {model, "--batch=4", "-p", policy,
                                           grid};
    ms_comparison c = {0};
    hall h;
    put_grid(sizes, grid, sizeof grid);
    hall_open(MS_FOR_COMPARE, words, policy, &h);
    const ms_hall inner = {&h.arguments, &h.keep, &h.trial, NULL};
    MUST(ms_variants_read(&inner, &h.points, &c, &hall_fault));
    MUST(ms_variants_fill(&inner, &h.points, 0, &c, &hall_fault));
    ck_assert_uint_eq(c.n, N_SIZES);
    for (uint32_t i = 0; i < c.n; i++)
        fits[i] = c.variants[i].record.report.fits;
    ms_variants_close(&h.points, &c);
    hall_close(&h);
}

static void sweep_fits(const uint64_t *sizes, const char *extra,
                       ms_outcome *outcomes)
{
    char grid[256];
    const char *const words[MOST_WORDS] = {model,  "--batch=4", "-p",
                                           policy, grid,        extra};
    ms_points_seat seat = {0};
    ms_grid axes;
    ms_job base;
    hall h;
    put_grid(sizes, grid, sizeof grid);
    hall_open(MS_FOR_SWEEP, words, policy, &h);
    MUST(ms_settings_read(&h.arguments, &h.keep, &base, &hall_fault));
    MUST(ms_grid_read(&h.arguments, &base, &h.keep, &axes, &hall_fault));
    const ms_sweep sweep = {.grid = &axes, .base = &base, .n = N_SIZES};
    for (uint32_t i = 0; i < N_SIZES; i++) {
        MUST(
            ms_sweep_item(&sweep, i, &h.points, &seat, &h.trial, &outcomes[i]));
        ck_assert_int_eq(outcomes[i].fault.err, MS_OK);
    }
    ms_points_leave(&h.points, &seat);
    hall_close(&h);
}

/* The first set-up of fit is that with these policies and nothing else; its
 * verdict as it is shown, and in *bare as the search has it. */
static bool fit_fits(uint64_t memory_bytes, bool *bare)
{
    char memory[48];
    const char *const words[MOST_WORDS] = {model, "--batch=4", "-p", policy,
                                           memory};
    const uint32_t first = 0;
    ms_job job;
    hall h;
    snprintf(memory, sizeof memory, "--memory=%" PRIu64 "B", memory_bytes);
    hall_open(MS_FOR_FIT, words, policy, &h);
    MUST(ms_settings_usual(&h.arguments, &h.keep, &job, &hall_fault));
    ms_fit fit = {.job = &job,
                  .points = &h.points,
                  .arena = &h.keep,
                  .proof = job.allocator};
    job.allocator = NULL;
    MUST(ms_fitspace_open(&fit, &hall_fault));
    MUST(ms_fitsearch_replay(&fit, &first, 1, false, &hall_fault));
    *bare = fit.all[0].fits;
    MUST(ms_fitproof_one(&fit, first, &hall_fault));
    bool fits = fit.all[0].fits;
    ms_fitspace_close(&fit);
    hall_close(&h);
    return fits;
}

/* ---- the law ------------------------------------------------------------- */

static void choose(int i)
{
    tests_source(set_ups[i][0], model);
    policy = set_ups[i][1];
}

/* Sizes around what the pool reserves and around the highest live bytes. */
static void choose_sizes(uint64_t *sizes)
{
    uint64_t reserved_bytes, exact_bytes;
    ck_assert(run_fits(UINT64_C(80) << 30, NULL, &reserved_bytes));
    ck_assert(run_fits(UINT64_C(80) << 30, "--allocator=exact", &exact_bytes));
    ck_assert_uint_ge(reserved_bytes, exact_bytes);
    const uint64_t all[N_SIZES] = {
        exact_bytes - 1,    exact_bytes,
        exact_bytes + 1,    (exact_bytes + reserved_bytes) / 2,
        reserved_bytes - 1, reserved_bytes,
        reserved_bytes + 1};
    memcpy(sizes, all, sizeof all);
}

START_TEST(one_answer)
{
    uint64_t sizes[N_SIZES];
    bool compared[N_SIZES], searched;
    ms_outcome through[N_SIZES], bare[N_SIZES];
    choose(_i);
    choose_sizes(sizes);
    compare_fits(sizes, compared);
    sweep_fits(sizes, "--allocator=torch", through);
    sweep_fits(sizes, NULL, bare);
    for (uint32_t i = 0; i < N_SIZES; i++) {
        bool fits = run_fits(sizes[i], NULL, NULL);
        ck_assert_int_eq(compared[i], fits);
        ck_assert_int_eq(fit_fits(sizes[i], &searched), fits);
        ck_assert_int_eq(searched, i > 0);
        ck_assert(through[i].row.fits_known && through[i].row.fits == fits);
        ck_assert(!bare[i].row.fits_known);
        ck_assert_int_eq(bare[i].row.fits_exact, i > 0);
        ck_assert_int_eq(through[i].row.fits_exact, i > 0);
        ck_assert_int_eq(run_fits(sizes[i], "--allocator=exact", NULL), i > 0);
        ck_assert(bare[i].row.fits_exact || !fits);
        ck_assert(fits || sizes[i] < sizes[N_SIZES - 2]);
    }
}
END_TEST

/* Settings with which run has no pool. */
START_TEST(known_without_a_pool)
{
    static const char *const extras[] = {"--allocator=exact", "--wall",
                                         "--book=device",
                                         "--set=training.device=cpu"};
    const char *extra = extras[_i];
    uint64_t sizes[N_SIZES];
    ms_outcome outcomes[N_SIZES];
    choose(0);
    for (uint32_t i = 0; i < N_SIZES; i++)
        sizes[i] = (UINT64_C(64) + 8 * i) << (20 + i % 4);
    sweep_fits(sizes, extra, outcomes);
    for (uint32_t i = 0; i < N_SIZES; i++) {
        ck_assert(outcomes[i].row.fits_known);
        ck_assert_int_eq(outcomes[i].row.fits, run_fits(sizes[i], extra, NULL));
    }
}
END_TEST

START_TEST(known_with_pages)
{
    uint64_t sizes[N_SIZES];
    ms_outcome outcomes[N_SIZES];
    choose(0);
    policy = "uvm";
    for (uint32_t i = 0; i < N_SIZES; i++)
        sizes[i] = (UINT64_C(600) + 20 * i) << 20;
    sweep_fits(sizes, NULL, outcomes);
    for (uint32_t i = 0; i < N_SIZES; i++) {
        ck_assert(outcomes[i].row.fits_known);
        ck_assert_int_eq(outcomes[i].row.fits, run_fits(sizes[i], NULL, NULL));
    }
}
END_TEST

Suite *suite_samefits(void)
{
    Suite *suite = suite_create("samefits");
    TCase *tcase = tcase_create("samefits");
    tcase_add_loop_test(tcase, one_answer, 0, N_SET_UPS);
    tcase_add_loop_test(tcase, known_without_a_pool, 0, 4);
    tcase_add_test(tcase, known_with_pages);
    suite_add_tcase(suite, tcase);
    return suite;
}
