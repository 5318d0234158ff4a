/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Op graphs exported from PyTorch: backward is derived by our rules and must
 * allocate what PyTorch's did, in the same order. */
#include "tests/tests.h"
#include "tests/truth/truth.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AS_MEASURED                                                            \
    "--optimizer sgd --framework torch-1.13 --set training.device=cpu"

/* Runs the exported graph, or the line of opgraphs.jsonl, which lacks what
 * PyTorch told of its autograd. */
static const ms_result *run_graph(const char *name)
{
    char path[TESTS_PATH], relative[TESTS_PATH];
    snprintf(relative, sizeof relative, "tests/truth/graphs/%s.graph.json",
             name);
    tests_source(relative, path);
    if (access(path, R_OK) == 0)
        return truth_run("%s " AS_MEASURED, path);
    char *json = truth_graph("opgraphs.jsonl", name);
    const ms_result *result = truth_run_json(json, "graph " AS_MEASURED);
    free(json);
    return result;
}

START_TEST(measured_graphs)
{
    truth_table table;
    truth_begin();
    truth_read_here("opgraphs.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++)
        truth_step("op graphs", &table, row,
                   run_graph(truth_cell(&table, row, "case")));
    truth_end();
}
END_TEST

/* Splits a case's name into the graph and the policy. */
static const char *policy_of(const char *name, char graph[64])
{
    static const struct {
        const char *name, *policy;
    } policies[] = {
        {"segments_reentrant", "-p checkpoint:full,variant=reentrant"},
        {"segments_nonreentrant",
         "-p checkpoint:full,variant=nonreentrant,early_stop=0"},
        {"segments_sequential_2", "-p checkpoint:sequential=2"},
        {"segments_sequential_3", "-p checkpoint:sequential=3"},
    };
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
        if (strcmp(name, policies[i].name) == 0) {
            snprintf(graph, 64, "segments");
            return policies[i].policy;
        }
    snprintf(graph, 64, "%s", name);
    return "";
}

/* Small networks of many kinds (nets_models.py). */
START_TEST(measured_nets)
{
    truth_table table;
    truth_begin();
    truth_read_here("nets.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        char graph[64];
        const char *policy = policy_of(truth_cell(&table, row, "case"), graph);
        char *json = truth_graph("nets.jsonl", graph);
        truth_step("nets", &table, row,
                   truth_run_json(json, "net " AS_MEASURED " %s", policy));
        free(json);
    }
    truth_end();
}
END_TEST

Suite *suite_opgraphs(void)
{
    Suite *suite = suite_create("opgraphs");
    TCase *tcase = tcase_create("opgraphs");
    tcase_add_test(tcase, measured_graphs);
    tcase_add_test(tcase, measured_nets);
    suite_add_tcase(suite, tcase);
    return suite;
}
