/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pinned host memory (pinned.tsv): what the pool takes, and what a run takes
 * in which save_on_cpu requests so many bytes. */
#include "sim/pools/hostpool.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <inttypes.h>
#include <stdio.h>

#define WIDTH 32768u /* fp32 numbers in a row */

static uint64_t asked_bytes(const truth_table *table, uint32_t row)
{
    return (truth_number(table, row, "asked") << 30) / 1000;
}

/* The bytes in units of 0.001 GiB. */
static uint64_t thousandths(uint64_t bytes)
{
    return (bytes * 1000 + (UINT64_C(1) << 29)) >> 30;
}

static uint64_t pool_takes(uint64_t bytes)
{
    ms_arena arena = {0};
    ms_fault fault = {0};
    ms_hostpool pool = {.arena = &arena};
    ck_assert_int_eq(ms_hostpool_take(&pool, bytes, 0, &fault), MS_OK);
    ms_arena_free(&arena);
    return pool.allocated_bytes;
}

/* gelu saves the output of the linear layer, the one tensor that is large
 * enough to be moved. */
static uint64_t run_takes(uint64_t bytes)
{
    char json[512];
    snprintf(json, sizeof json,
             "{\"memsim\": 1, \"name\": \"pinned\", \"input\": {\"shape\": "
             "[%" PRIu64 ", 1]}, \"layers\": [{\"type\": \"linear\", "
             "\"out\": %u}, {\"type\": \"gelu\"}, {\"type\": \"mean\"}]}",
             bytes / WIDTH / 4, WIDTH);
    const ms_result *result = truth_run_json(
        json, "pinned --precision fp32 -p swap:save_on_cpu,min=1GiB");
    const struct ms_far_memory *host = &result->report->far[MS_HOST_POOL];
    ck_assert_uint_le(host->peak_bytes, bytes);
    ck_assert_uint_gt(host->peak_bytes, bytes - bytes / 1000);
    ck_assert_uint_eq(host->reserved_bytes, host->pinned_bytes);
    return host->reserved_bytes;
}

START_TEST(blocks)
{
    truth_table table;
    truth_begin();
    truth_read_here("pinned.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        uint64_t bytes = asked_bytes(&table, row);
        uint64_t taken = truth_number(&table, row, "taken");
        char name[64];
        snprintf(name, sizeof name, "%s %s", truth_cell(&table, row, "case"),
                 truth_cell(&table, row, "asked"));
        truth_compare("pinned", name, "block, 0.001 GiB", taken,
                      thousandths(pool_takes(bytes)));
        truth_compare("pinned", name, "of a run, 0.001 GiB", taken,
                      thousandths(run_takes(bytes)));
    }
    truth_end();
}
END_TEST

Suite *suite_pinned(void)
{
    Suite *suite = suite_create("pinned");
    TCase *tcase = tcase_create("pinned");
    tcase_add_test(tcase, blocks);
    suite_add_tcase(suite, tcase);
    return suite;
}
