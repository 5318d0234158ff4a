/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Layer types one by one: what they keep and what backward allocates. */
#include "tests/tests.h"
#include "tests/truth/truth.h"

#include <stdio.h>
#include <string.h>

#define WORTH_A_LOOK 65u /* bytes; smaller blocks are not in the table */

static const char model[] =
    "{\"memsim\": 1, \"name\": \"layer\", \"input\": {\"shape\": %s},"
    " \"layers\": ["
    "{\"type\": \"op\", \"name\": \"z\", \"shape\": %s, \"inputs\": "
    "[\"input\"]},"
    "{\"type\": \"op\", \"name\": \"x\", \"shape\": %s, \"inputs\": "
    "[\"%s\"]},"
    "{\"name\": \"y\", %s}, {\"type\": \"mean\"}]}";

/* What ops of layer "y" allocate in backward. */
static uint64_t backward_bytes(const ms_result *result)
{
    const ms_plan *plan = &result->plan;
    const ms_graph *graph = plan->graph;
    uint64_t sum = 0;
    for (uint32_t r = 0; r < plan->n_rows; r++) {
        const ms_plan_op *op = &plan->op[plan->row[r].op];
        if (op->of == MS_NONE || graph->op_layer[op->of] == MS_NONE ||
            (op->pass != MS_GRAD_INPUT && op->pass != MS_GRAD_WEIGHT) ||
            plan->row[r].category == MS_WORKSPACE ||
            plan->row[r].bytes < WORTH_A_LOOK ||
            strcmp(graph->layer_name[graph->op_layer[op->of]], "y") != 0)
            continue;
        sum += plan->row[r].bytes;
    }
    return sum;
}

static void compare(const truth_table *table, uint32_t row)
{
    char json[1024];
    const char *name = truth_cell(table, row, "case");
    const char *sample = truth_cell(table, row, "sample");
    const char *layer = truth_cell(table, row, "layer");
    bool image = strchr(strchr(sample, ',') + 1, ',') != NULL;
    bool joins = strstr(layer, "\"z\"") != NULL;
    snprintf(json, sizeof json, model, sample, sample, sample,
             joins ? "input" : "z", layer);
    const ms_result *result =
        truth_run_json(json,
                       "layer --batch %d --kernels eager --precision fp32 "
                       "--framework torch-1.13 --set training.device=cpu",
                       image ? 4 : 8);
    truth_compare("layers", name, "saved_bytes",
                  truth_number(table, row, "saved_bytes"),
                  truth_rank(result)->saved_for_backward_bytes);
    truth_compare("layers", name, "backward_bytes",
                  truth_number(table, row, "backward_bytes"),
                  backward_bytes(result));
}

START_TEST(one_layer)
{
    truth_table table;
    truth_begin();
    truth_read_here("layers.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++)
        compare(&table, row);
    truth_end();
}
END_TEST

Suite *suite_layers(void)
{
    Suite *suite = suite_create("layers");
    TCase *tcase = tcase_create("layers");
    tcase_add_test(tcase, one_layer);
    suite_add_tcase(suite, tcase);
    return suite;
}
