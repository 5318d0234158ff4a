/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"

#include <stdio.h>
#include <string.h>

static uint64_t measured(const ms_rank_report *rank, const char *quantity)
{
    uint64_t total = rank->parameters_bytes + rank->gradients_bytes +
                     rank->optimizer_state_bytes;
    if (strcmp(quantity, "parameters") == 0)
        return rank->parameters_bytes;
    if (strcmp(quantity, "gradients") == 0)
        return rank->gradients_bytes;
    if (strcmp(quantity, "optimizer state") == 0)
        return rank->optimizer_state_bytes;
    if (strcmp(quantity, "level at the start") == 0)
        return rank->levels[MS_MARK_START];
    ck_assert_str_eq(quantity, "total");
    return total;
}

static void compare_table(const char *file)
{
    truth_table table;
    truth_begin();
    truth_read_here(file, &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        char json[128], quantity[64];
        snprintf(json, sizeof json,
                 "{\"memsim\": 1, \"family\": \"parameters\", \"count\": %s}",
                 truth_cell(&table, row, "count"));
        const ms_result *result = truth_run_json(
            json, "states %s", truth_cell(&table, row, "options"));
        const char *part = truth_cell(&table, row, "quantity");
        snprintf(quantity, sizeof quantity, "%s, bytes", part);
        truth_compare("states", truth_cell(&table, row, "case"), quantity,
                      truth_number(&table, row, "bytes"),
                      measured(truth_rank(result), part));
    }
    truth_end();
}

START_TEST(model_states)
{
    compare_table("states.tsv");
}
END_TEST

START_TEST(states_by_precision)
{
    compare_table("precisions.tsv");
}
END_TEST

Suite *suite_states(void)
{
    Suite *suite = suite_create("states");
    TCase *tcase = tcase_create("states");
    tcase_add_test(tcase, model_states);
    tcase_add_test(tcase, states_by_precision);
    suite_add_tcase(suite, tcase);
    return suite;
}
