/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/tests.h"
#include "tests/truth/truth.h"

START_TEST(measured_steps)
{
    truth_table table;
    truth_begin();
    truth_read_here("torch.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++)
        truth_torch(&table, row);
    truth_end();
}
END_TEST

Suite *suite_torch(void)
{
    Suite *suite = suite_create("torch");
    TCase *tcase = tcase_create("torch");
    tcase_add_test(tcase, measured_steps);
    suite_add_tcase(suite, tcase);
    return suite;
}
