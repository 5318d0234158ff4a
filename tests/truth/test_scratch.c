/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The scratch of CUDA reductions against recorded steps. */
#include "graphs/ops/ops.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"

START_TEST(reductions)
{
    truth_table table;
    truth_begin();
    truth_read_here("reductions.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        uint64_t outputs = truth_number(&table, row, "outputs");
        const ms_device device = {
            .multiprocessors =
                (uint32_t)truth_number(&table, row, "multiprocessors"),
            .threads_per_multiprocessor =
                (uint32_t)truth_number(&table, row, "threads"),
        };
        const ms_reduction shape = {
            .outputs = outputs,
            .values = truth_number(&table, row, "values"),
            .accumulator = (uint32_t)truth_number(&table, row, "accumulator"),
            .vector = outputs % 4 == 0 ? 4 : 1,
            .contiguous = truth_number(&table, row, "contiguous") != 0,
            .one_dim = truth_number(&table, row, "one_dim") != 0,
        };
        ms_scratch scratch = ms_scratch_of(&device, &shape);
        const char *name = truth_cell(&table, row, "case");
        truth_compare("reductions", name, "buffer",
                      truth_number(&table, row, "buffer"), scratch.buffer);
        truth_compare("reductions", name, "semaphores",
                      truth_number(&table, row, "semaphores"),
                      scratch.semaphores);
    }
    truth_end();
}
END_TEST

Suite *suite_scratch(void)
{
    Suite *suite = suite_create("scratch");
    TCase *tcase = tcase_create("scratch");
    tcase_add_test(tcase, reductions);
    suite_add_tcase(suite, tcase);
    return suite;
}
