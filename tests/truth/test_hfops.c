/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Configurations of Hugging Face against PyTorch running the ops of their
 * modelling code (hf_models.py), and against copies of the hidden state that
 * were measured per layer. */
#include "sim/graph.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void compare(const truth_table *table, uint32_t row)
{
    char name[64];
    const char *precision = truth_cell(table, row, "precision");
    snprintf(name, sizeof name, "%s %s", truth_cell(table, row, "case"),
             precision);
    const ms_result *result = truth_run_json(
        truth_cell(table, row, "config"),
        "config.json --batch 2 --sequence 64 --kernels eager --precision %s "
        "--framework torch-1.13 --set training.device=cpu --optimizer sgd "
        "--set optimizer_impl=loop",
        precision);
    const ms_rank_report *rank = truth_rank(result);
    uint64_t start = rank->levels[MS_MARK_START];
    uint64_t forward = rank->phase_peaks[MS_PHASE_FORWARD];
    uint64_t loss = rank->phase_peaks[MS_PHASE_LOSS];
    const struct {
        const char *quantity;
        uint64_t bytes;
    } is[] = {
        {"static_bytes", start},
        {"saved_bytes", rank->saved_for_backward_bytes},
        {"live_after_fwd_rel", rank->levels[MS_MARK_BEFORE_LOSS] - start},
        {"live_after_loss_rel", rank->levels[MS_MARK_AFTER_FORWARD] - start},
        {"live_after_bwd_rel", rank->levels[MS_MARK_AFTER_BACKWARD] - start},
        {"bwd_peak_rel_no_ws", rank->phase_peaks[MS_PHASE_BACKWARD] - start},
        {"fwd_peak_rel_no_ws", (forward > loss ? forward : loss) - start},
    };
    for (size_t i = 0; i < sizeof is / sizeof *is; i++)
        truth_compare("hfops", name, is[i].quantity,
                      truth_number(table, row, is[i].quantity), is[i].bytes);
}

START_TEST(eager_code)
{
    truth_table table;
    truth_begin();
    truth_read_here("hfops.tsv", &table);
    ck_assert_uint_gt(table.n_rows, 0);
    for (uint32_t row = 0; row < table.n_rows; row++)
        compare(&table, row);
    truth_end();
}
END_TEST

/* ---- copies of the hidden state ------------------------------------------ */

#define SEQUENCE 2048

static uint64_t saved(const char *config, unsigned layers)
{
    const ms_result *result = truth_run_json(
        config,
        "config.json --sequence %d --kernels efficient --precision bf16 "
        "--set model.num_hidden_layers=%u",
        SEQUENCE, layers);
    return truth_rank(result)->saved_for_backward_bytes;
}

START_TEST(copies_of_the_hidden_state)
{
    static const char key[] = "\"hidden_size\": ";
    truth_table table;
    truth_begin();
    truth_read_here("hfcopies.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        const char *config = truth_cell(&table, row, "config");
        const char *hidden = strstr(config, key) + sizeof key - 1;
        uint64_t copy = 2 * SEQUENCE * strtoull(hidden, NULL, 10);
        uint64_t layer = (saved(config, 4) - saved(config, 2)) / 2;
        truth_compare("hfops", truth_cell(&table, row, "model"),
                      "copies of hidden per layer, tenths",
                      truth_number(&table, row, "tenths"), 10 * layer / copy);
    }
    truth_end();
}
END_TEST

/* ---- class defaults ------------------------------------------------------ */

START_TEST(nothing_but_the_type)
{
    truth_table table;
    truth_begin();
    truth_read_here("hfdefaults.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        const char *type = truth_cell(&table, row, "model_type");
        char json[160];
        snprintf(json, sizeof json,
                 "{\"model_type\": \"%s\", \"architectures\": [\"%s\"]}", type,
                 truth_cell(&table, row, "architecture"));
        const ms_result *result =
            truth_run_json(json, "config.json%s",
                           strcmp(type, "vit") == 0 ? "" : " --sequence 16");
        truth_compare("hfops", type, "parameters of the class defaults",
                      truth_number(&table, row, "parameters"),
                      result->graph->parameters);
    }
    truth_end();
}
END_TEST

Suite *suite_hfops(void)
{
    Suite *suite = suite_create("hfops");
    TCase *tcase = tcase_create("hfops");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, eager_code);
    tcase_add_test(tcase, copies_of_the_hidden_state);
    tcase_add_test(tcase, nothing_but_the_type);
    suite_add_tcase(suite, tcase);
    return suite;
}
