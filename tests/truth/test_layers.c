/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Layer types one by one: what they keep and what backward allocates. */
#include "sim/plan.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WORTH_A_LOOK 65u /* bytes; smaller blocks are not in the table */

#define MAX_ALLOCATIONS 4096u

/* The layer's inputs are made by ops that keep nothing. */
static const char op[] = "{\"type\": \"op\", \"name\": \"%s\", \"shape\": %s, "
                         "\"inputs\": [\"input\"]},";

/* "3*1024 64", the sizes that layer "y" allocates in backward, in order. */
static void put_backward(const ms_result *result, ms_text *text)
{
    const ms_plan *plan = &result->plan;
    const ms_graph *graph = plan->graph;
    uint64_t sizes[MAX_ALLOCATIONS];
    uint32_t n = 0;
    for (uint32_t r = 0; r < plan->n_rows && n < MAX_ALLOCATIONS; r++) {
        const ms_plan_op *made = &plan->op[plan->row[r].op];
        if (made->of == MS_NONE || graph->op_layer[made->of] == MS_NONE ||
            (made->pass != MS_GRAD_INPUT && made->pass != MS_GRAD_WEIGHT) ||
            plan->row[r].category == MS_WORKSPACE ||
            plan->row[r].bytes < WORTH_A_LOOK ||
            strcmp(graph->layer_name[graph->op_layer[made->of]], "y") != 0)
            continue;
        sizes[n++] = plan->row[r].bytes;
    }
    for (uint32_t i = 0, same; i < n; i += same) {
        for (same = 1; i + same < n && sizes[i + same] == sizes[i];)
            same++;
        ms_text_add(text, i > 0 ? " " : "");
        if (same > 1)
            ms_text_add(text, "%u*", same);
        ms_text_add(text, "%" PRIu64, sizes[i]);
    }
    if (n == 0)
        ms_text_add(text, "-");
}

static const char *model_of(const truth_table *table, uint32_t row,
                            ms_arena *arena)
{
    const char *sample = truth_cell(table, row, "sample");
    const char *layer = truth_cell(table, row, "layer");
    ms_text json = {.arena = arena};
    ms_text_add(&json,
                "{\"memsim\": 1, \"name\": \"layer\", \"input\": "
                "{\"shape\": %s}, \"layers\": [",
                sample);
    for (const char *name = "wzx"; *name != '\0'; name++) {
        const char is[] = {'"', *name, '"', '\0'};
        const char own[] = {*name, '\0'};
        if (*name == 'x' || strstr(layer, is) != NULL)
            ms_text_add(&json, op, own, sample);
    }
    ms_text_add(&json, "{\"name\": \"y\", %s}", layer);
    if (strcmp(truth_cell(table, row, "ends"), "mean") == 0)
        ms_text_add(&json, ", {\"type\": \"mean\"}");
    ms_text_add(&json, "]}");
    ck_assert(!json.failed);
    return json.bytes;
}

static void compare(const truth_table *table, uint32_t row)
{
    ms_arena arena = {0};
    ms_text backward = {.arena = &arena};
    const char *name = truth_cell(table, row, "case");
    const char *sample = truth_cell(table, row, "sample");
    bool image = strchr(sample, ',') != NULL &&
                 strchr(strchr(sample, ',') + 1, ',') != NULL;
    const ms_result *result =
        truth_run_json(model_of(table, row, &arena),
                       "layer --batch %d --kernels eager --precision fp32 "
                       "--framework torch-1.13 --set training.device=cpu",
                       image ? 4 : 8);
    truth_compare("layers", name, "saved_bytes",
                  truth_number(table, row, "saved_bytes"),
                  truth_rank(result)->saved_for_backward_bytes);
    put_backward(result, &backward);
    truth_compare_words("layers", name, "backward_bytes",
                        truth_cell(table, row, "backward_bytes"),
                        backward.bytes);
    ms_arena_free(&arena);
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
