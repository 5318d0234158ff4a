/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Configurations of Hugging Face: exact counts of parameters. */
#include "graphs/device.h"
#include "graphs/modelgraph.h"
#include "sim/graph.h"
#include "sim/shape.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The setting that chooses which count is compared. */
static const struct {
    const char *which, *head;
} heads[] = {{"base_no_pooler", "none"},
             {"base_with_pooler", "pooler"},
             {"with_1000_head", "classes:1000"}};

typedef struct counts {
    uint64_t total, active;
} counts;

static uint32_t head_of(const char *which, ms_override *set)
{
    for (uint32_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (strcmp(heads[i].which, which) == 0) {
            *set = (ms_override){"head", heads[i].head};
            return 1;
        }
    return 0;
}

static counts count(ms_model *model, ms_arena *arena)
{
    const ms_shape shape = {.batch = 1, .micro_batches = 1, .data_ranks = 1};
    ms_fault fault = {0};
    ms_training training;
    ms_graph graph;
    ms_layer_facts *facts;
    counts sum = {0};
    ms_training_init(&training);
    training.sequence = model->tokens ? 8 : 0;
    ms_err err = ms_resolve_training(&training, model, &fault);
    if (err == MS_OK)
        err = ms_dag_order(model, arena, &fault);
    if (err == MS_OK)
        err = ms_lower(model, &training, ms_devicerows_at(0), &shape, arena,
                       &graph, &fault);
    if (err == MS_OK)
        err = ms_lower_facts(model, &graph, arena, &facts, &fault);
    ck_assert_msg(err == MS_OK, "%s: %s", model->name, fault.what);
    sum.total = graph.parameters;
    for (uint32_t i = 0; i < graph.n_layers; i++)
        sum.active += facts[i].active;
    return sum;
}

static void compare(const truth_table *table, uint32_t row, const char *path,
                    const char *text)
{
    const char *which = truth_cell(table, row, "which");
    char quantity[64];
    ms_arena arena = {0};
    ms_fault fault = {0};
    ms_override set;
    ms_model model;
    uint32_t n = head_of(which, &set);
    ms_err err = path != NULL
                     ? ms_read_model(path, &set, n, &arena, &model, &fault)
                     : ms_read_model_bytes("config.json", text, strlen(text),
                                           &set, n, &arena, &model, &fault);
    ck_assert_msg(err == MS_OK, "%s: %s", truth_cell(table, row, "case"),
                  fault.what);
    counts sum = count(&model, &arena);
    snprintf(quantity, sizeof quantity, "parameters, %s%s", which,
             path != NULL ? " (the file)" : "");
    truth_compare("huggingface", truth_cell(table, row, "case"), quantity,
                  truth_number(table, row, "parameters"),
                  strcmp(which, "active") == 0 ? sum.active : sum.total);
    ms_arena_free(&arena);
}

START_TEST(published_counts)
{
    truth_table table;
    truth_begin();
    truth_read_here("huggingface.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++)
        compare(&table, row, NULL, truth_cell(&table, row, "config"));
    truth_end();
}
END_TEST

/* Classes of transformers for tasks, by the name in "architectures". */
START_TEST(published_heads)
{
    truth_table table;
    truth_begin();
    truth_read_here("heads.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++)
        compare(&table, row, NULL, truth_cell(&table, row, "config"));
    truth_end();
}
END_TEST

/* The same for the files as they were published. */
START_TEST(published_files)
{
    truth_table table;
    char path[TESTS_PATH], relative[TESTS_PATH];
    truth_begin();
    truth_read_here("huggingface.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        snprintf(relative, sizeof relative, "huggingface/%s.json",
                 truth_cell(&table, row, "case"));
        if (!tests_truth(relative, path))
            break;
        compare(&table, row, path, NULL);
    }
    truth_end();
}
END_TEST

Suite *suite_huggingface(void)
{
    Suite *suite = suite_create("huggingface");
    TCase *tcase = tcase_create("counts");
    tcase_add_test(tcase, published_counts);
    tcase_add_test(tcase, published_heads);
    tcase_add_test(tcase, published_files);
    suite_add_tcase(suite, tcase);
    return suite;
}
