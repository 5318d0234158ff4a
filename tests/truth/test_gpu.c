/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From laptop to GPU: graphs exported on a CPU (models_torch.py), simulated for
 * CUDA and torch 2, against what recorded steps on GPUs allocated. */
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <stdio.h>
#include <string.h>

/* The sections of a step with two blocks, in order. */
static const char *const sections[] = {
    "embed_forward",  "block_forward",  "block_forward",
    "head_forward",   "loss",           "head_backward",
    "block_backward", "block_backward", "embed_backward",
};

#define FORWARD_SECTIONS 4u

static const ms_result *run(const char *graph, const char *options)
{
    char path[TESTS_PATH], relative[64];
    snprintf(relative, sizeof relative, "tests/truth/graphs/%s.graph.json",
             graph);
    tests_source(relative, path);
    return truth_run("%s --optimizer sgd %s", path, options);
}

/* ---- the order of allocations -------------------------------------------- */

/* Says whether the table leaves the row out. */
static bool is_left_out(const ms_plan *plan, const ms_row *row)
{
    const char *name = plan->graph->storage_name[row->storage];
    return plan->op[row->op].of == MS_NONE ||
           strncmp(name, "reduction_", strlen("reduction_")) == 0;
}

/* The bytes of the next row, from *row on, that an op of the step allocates. */
static uint64_t next_bytes(const ms_plan *plan, uint32_t *row)
{
    while (*row < plan->n_rows && is_left_out(plan, &plan->row[*row]))
        (*row)++;
    return *row < plan->n_rows ? plan->row[(*row)++].bytes : 0;
}

typedef struct order_case {
    const char *name, *model; /* the model's rows of gpu_orders.tsv */
} order_case;

/* Counts how many allocations of the section stand at their place. */
static void compare_section(const truth_table *orders, const order_case *of,
                            uint32_t section, const ms_plan *plan,
                            uint32_t *row)
{
    uint64_t all = 0, equal = 0;
    char quantity[64];
    for (uint32_t r = 0; r < orders->n_rows; r++) {
        if (strcmp(truth_cell(orders, r, "model"), of->model) != 0 ||
            strcmp(truth_cell(orders, r, "section"), sections[section]) != 0)
            continue;
        all++;
        uint32_t here = *row;
        bool same = next_bytes(plan, &here) == truth_number(orders, r, "bytes");
        equal += same;
        if (same)
            /* an allocation that is missing does not shift those that follow */
            *row = here;
    }
    snprintf(quantity, sizeof quantity, "%u %s: allocations", section,
             sections[section]);
    truth_compare("gpu", of->name, quantity, all, equal);
}

static void compare_order(const order_case *of, bool whole, const ms_plan *plan)
{
    truth_table orders;
    uint32_t row = 0, rest = 0;
    uint32_t n = whole ? sizeof sections / sizeof *sections : FORWARD_SECTIONS;
    truth_read_here("gpu_orders.tsv", &orders);
    for (uint32_t s = 0; s < n; s++)
        compare_section(&orders, of, s, plan, &row);
    while (whole && next_bytes(plan, &row) != 0)
        rest++;
    truth_compare("gpu", of->name, "allocations beyond", 0, rest);
}

/* ---- levels -------------------------------------------------------------- */

static void compare_levels(const truth_table *table, uint32_t row,
                           const ms_result *result)
{
    const ms_rank_report *rank = truth_rank(result);
    const uint64_t *level = rank->levels, *peak = rank->phase_peaks;
    uint64_t start = level[MS_MARK_START];
    const struct {
        const char *column;
        uint64_t memsim;
    } quantities[] = {
        {"saved_bytes", rank->saved_for_backward_bytes},
        {"before_loss", level[MS_MARK_BEFORE_LOSS] - start},
        {"after_loss", level[MS_MARK_AFTER_FORWARD] - start},
        {"after_backward", level[MS_MARK_AFTER_BACKWARD] - start},
        {"loss_peak", peak[MS_PHASE_LOSS] - level[MS_MARK_BEFORE_LOSS]},
        {"backward_peak",
         peak[MS_PHASE_BACKWARD] - level[MS_MARK_AFTER_FORWARD]},
    };
    for (size_t i = 0; i < sizeof quantities / sizeof *quantities; i++)
        if (strcmp(truth_cell(table, row, quantities[i].column), "-") != 0)
            truth_compare("gpu", truth_cell(table, row, "case"),
                          quantities[i].column,
                          truth_number(table, row, quantities[i].column),
                          quantities[i].memsim);
}

START_TEST(exported_on_a_cpu)
{
    truth_table table;
    truth_begin();
    truth_read_here("gpu.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        const order_case of = {truth_cell(&table, row, "case"),
                               truth_cell(&table, row, "orders")};
        const ms_result *result = run(truth_cell(&table, row, "graph"),
                                      truth_cell(&table, row, "options"));
        bool whole = strcmp(truth_cell(&table, row, "step"), "whole") == 0;
        compare_levels(&table, row, result);
        compare_order(&of, whole, result->plan);
    }
    truth_end();
}
END_TEST

/* Dropout on the CPU saves noise of 4 bytes per element, on CUDA a mask of 1
 * byte (graphs/autograd.md 18): 8 layers of 64 x 1024. */
START_TEST(dropout_saves_a_mask)
{
    const uint64_t measured_on_cpu = 6294020; /* truth/torch/summary.csv */
    truth_begin();
    truth_compare("gpu", "mlp8x1024_b64_drop", "saved_bytes",
                  measured_on_cpu - UINT64_C(8) * 64 * 1024 * 3,
                  truth_rank(run("mlp8x1024_b64_drop", "--precision fp32"))
                      ->saved_for_backward_bytes);
    truth_end();
}
END_TEST

Suite *suite_gpu(void)
{
    Suite *suite = suite_create("gpu");
    TCase *tcase = tcase_create("gpu");
    tcase_add_test(tcase, exported_on_a_cpu);
    tcase_add_test(tcase, dropout_saves_a_mask);
    suite_add_tcase(suite, tcase);
    return suite;
}
