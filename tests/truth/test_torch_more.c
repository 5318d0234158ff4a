/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/tests.h"
#include "tests/truth/truth.h"

#include <string.h>

static bool is_ours(const truth_table *table, const char *name)
{
    for (uint32_t row = 0; row < table->n_rows; row++)
        if (strcmp(truth_cell(table, row, "case"), name) == 0)
            return true;
    return false;
}

static bool can_be_written(const char *name)
{
    return truth_torch_knows(name);
}

/* Steps of the same models that were measured after torch.tsv was made. */
START_TEST(later_steps)
{
    char path[TESTS_PATH];
    truth_table ours, all;
    if (!tests_truth("torch/summary.csv", path))
        return;
    truth_begin();
    truth_read_here("torch.tsv", &ours);
    truth_read(path, &all);
    for (uint32_t row = 0; row < all.n_rows; row++) {
        const char *name = truth_cell(&all, row, "case");
        if (can_be_written(name) && !is_ours(&ours, name))
            truth_torch(&all, row);
    }
    truth_end();
}
END_TEST

Suite *suite_torch_more(void)
{
    Suite *suite = suite_create("torch_more");
    TCase *tcase = tcase_create("torch_more");
    tcase_add_test(tcase, later_steps);
    suite_add_tcase(suite, tcase);
    return suite;
}
