/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What each of torchtune's memory optimizations takes from the peak. */
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#define THOUSANDTH (1073741824.0 / 1000) /* of a GiB */

static double peak_of(const truth_table *table, uint32_t row)
{
    char path[TESTS_PATH];
    tests_source("tests/truth/llama-3.2-3b.json", path);
    const ms_result *result = truth_run(
        "%s --precision bf16 --batch 2 --sequence 4096 --device a100 --set "
        "training.optimizer_impl=%s --set training.hold_output=none %s",
        path, "fused", truth_cell(table, row, "options"));
    return (double)truth_rank(result)->peak.active_bytes;
}

static double published(const truth_table *table, uint32_t row)
{
    return (double)truth_number(table, row, "thousandths") * THOUSANDTH;
}

/* Compares in percent of the published difference; within 5 percent counts
 * as 100. */
static void compare_steps(const truth_table *table, uint32_t row, double before,
                          double after)
{
    double truth = published(table, row) - published(table, row - 1);
    double percent = 100 * (after - before) / truth;
    bool within = percent > 95 && percent < 105;
    truth_compare("ladder", truth_cell(table, row, "name"),
                  "less than before, % of truth, 100: within 5", 100,
                  within ? 100 : (uint64_t)(percent + 0.5));
}

START_TEST(ladder)
{
    truth_table table;
    truth_begin();
    truth_read_here("ladder.tsv", &table);
    double before = peak_of(&table, 0);
    double percent = 100 * before / published(&table, 0);
    truth_compare("ladder", truth_cell(&table, 0, "name"),
                  "peak, % of truth, 100: within 1", 100,
                  percent > 99 && percent < 101 ? 100
                                                : (uint64_t)(percent + 0.5));
    for (uint32_t row = 1; row < table.n_rows; row++) {
        double after = peak_of(&table, row);
        compare_steps(&table, row, before, after);
        before = after;
    }
    ck_assert_uint_eq(table.n_rows, 9);
    truth_end();
}
END_TEST

Suite *suite_ladder(void)
{
    Suite *suite = suite_create("ladder");
    TCase *tcase = tcase_create("ladder");
    tcase_add_test(tcase, ladder);
    suite_add_tcase(suite, tcase);
    return suite;
}
