/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/graph.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <string.h>

START_TEST(published_counts)
{
    truth_table table;
    truth_begin();
    truth_read_here("counts.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        uint64_t unit = truth_number(&table, row, "unit");
        const ms_result *result =
            truth_run("%s", truth_cell(&table, row, "command"));
        uint64_t parameters = result->graph->parameters;
        truth_compare("counts", truth_cell(&table, row, "case"), "parameters",
                      truth_number(&table, row, "parameters"),
                      (parameters + unit / 2) / unit * unit);
    }
    truth_end();
}
END_TEST

/* Every built-in model has a number from an outside source. */
START_TEST(every_builtin_is_counted)
{
    truth_table table;
    truth_begin();
    truth_read_here("counts.tsv", &table);
    for (uint32_t m = 0; m < ms_builtin_n_models; m++) {
        bool found = false;
        for (uint32_t row = 0; row < table.n_rows; row++)
            found |= strcmp(truth_cell(&table, row, "command"),
                            ms_builtin_models[m].name) == 0;
        ck_assert_msg(found, "%s", ms_builtin_models[m].name);
    }
    truth_end();
}
END_TEST

Suite *suite_counts(void)
{
    Suite *suite = suite_create("counts");
    TCase *tcase = tcase_create("counts");
    tcase_add_test(tcase, published_counts);
    tcase_add_test(tcase, every_builtin_is_counted);
    suite_add_tcase(suite, tcase);
    return suite;
}
