/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Peaks of steps on an H100 (h100peaks.tsv), whose times test_times.c has. */
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

/* In tenths of a percent: an allocator's blocks depend on what ran before the
 * step, which is not in the table. */
#define UNITS 1000

START_TEST(peaks)
{
    truth_table table;
    truth_begin();
    truth_read_here("h100peaks.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        uint64_t measured = truth_number(&table, row, "active_bytes");
        const ms_result *result =
            truth_peak(truth_cell(&table, row, "options"));
        uint64_t told = truth_rank(result)->peak.active_bytes;
        truth_compare("h100", truth_cell(&table, row, "id"), "peak, 0.1 %",
                      UNITS, (told * UNITS + measured / 2) / measured);
    }
    truth_end();
}
END_TEST

Suite *suite_h100(void)
{
    Suite *suite = suite_create("h100");
    TCase *tcase = tcase_create("h100");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, peaks);
    suite_add_tcase(suite, tcase);
    return suite;
}
