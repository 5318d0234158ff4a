/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

/* The head of a model stays in 16 bits; this layer is not a head. */
static const char layer[] =
    "{\"memsim\": 1, \"name\": \"layer\", \"input\": {\"shape\": [1024]},"
    " \"layers\": [{\"type\": \"linear\", \"out\": 1024},"
    " {\"type\": \"flatten\"}, {\"type\": \"mean\"}]}";

START_TEST(transformer_engine_after_forward)
{
    truth_table table;
    truth_begin();
    truth_read_here("te_memory.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        const ms_result *result = truth_run_json(
            layer, "layer --batch 1024 --device h100 --optimizer none %s",
            truth_cell(&table, row, "options"));
        uint64_t bytes = truth_rank(result)->levels[MS_MARK_BEFORE_LOSS];
        truth_compare("precisions", truth_cell(&table, row, "case"),
                      "after forward, MiB / 100",
                      truth_number(&table, row, "hundredths"),
                      (bytes * 100 + (1u << 19)) >> 20);
    }
    truth_end();
}
END_TEST

Suite *suite_precisions(void)
{
    Suite *suite = suite_create("precisions");
    TCase *tcase = tcase_create("precisions");
    tcase_add_test(tcase, transformer_engine_after_forward);
    suite_add_tcase(suite, tcase);
    return suite;
}
