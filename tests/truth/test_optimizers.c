/* SPDX-License-Identifier: GPL-3.0-or-later */
/* State and scratch of each optimizer of PyTorch 1.13.1 on a CPU
 * (optim_torch.py). */
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"

static const char model[] =
    "{\"memsim\": 1, \"name\": \"linears\", \"input\": {\"shape\": [300]},"
    " \"layers\": [{\"type\": \"linear\", \"out\": 700},"
    " {\"type\": \"linear\", \"out\": 500},"
    " {\"type\": \"linear\", \"out\": 10}, {\"type\": \"mean\"}]}";

static const char many[] =
    "{\"memsim\": 1, \"name\": \"many\", \"input\": {\"shape\": [4]},"
    " \"layers\": [{\"repeat\": 50, \"name\": \"l\", \"layers\": ["
    "{\"type\": \"linear\", \"out\": 4}]}, {\"type\": \"mean\"}]}";

START_TEST(torch_optim)
{
    truth_table table;
    truth_begin();
    truth_read_here("optimizers.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        const char *name = truth_cell(&table, row, "optimizer");
        const char *clip = truth_cell(&table, row, "clip");
        bool clips = *clip != '0';
        const ms_result *result = truth_run_json(
            clips ? many : model,
            "linears --batch 8 --optimizer %s --set optimizer_impl=%s "
            "--set weight_decay=%s --set clip_norm=%s --precision fp32 "
            "--framework torch-1.13 "
            "--set device=cpu",
            name, truth_cell(&table, row, "impl"),
            truth_cell(&table, row, "decay"), clip);
        const ms_rank_report *rank = truth_rank(result);
        truth_compare("optimizers", name, "state, bytes",
                      truth_number(&table, row, "state"),
                      rank->optimizer_state_bytes);
        truth_compare(
            "optimizers", name, "scratch, bytes",
            truth_number(&table, row, clips ? "clip_scratch" : "scratch"),
            rank->optimizer_scratch_bytes);
    }
    truth_end();
}
END_TEST

Suite *suite_optimizers(void)
{
    Suite *suite = suite_create("optimizers");
    TCase *tcase = tcase_create("optimizers");
    tcase_add_test(tcase, torch_optim);
    suite_add_tcase(suite, tcase);
    return suite;
}
