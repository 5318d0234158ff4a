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
#define WORTH_A_LOOK 1024u /* bytes; smaller allocations are scalars */

/* The graph's file: here, or under MEMSIM_TRUTH, else false. */
static bool find_graph(const char *name, char path[TESTS_PATH])
{
    char relative[TESTS_PATH];
    snprintf(relative, sizeof relative, "tests/truth/graphs/%s.graph.json",
             name);
    tests_source(relative, path);
    if (access(path, R_OK) == 0)
        return true;
    snprintf(relative, sizeof relative, "torch/%s.graph.json", name);
    return tests_truth(relative, path);
}

static bool is_backward(uint8_t pass)
{
    return pass == MS_RECOMPUTE || pass == MS_GRAD_INPUT ||
           pass == MS_GRAD_WEIGHT || pass == MS_ACCUMULATE;
}

/* FNV-1a over the decimal sizes of backward's allocations, a line each. */
static uint64_t hash_backward(const ms_result *result, uint64_t *n)
{
    const ms_plan *plan = &result->plan;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    *n = 0;
    for (uint32_t r = 0; r < plan->n_rows; r++) {
        const ms_row *row = &plan->row[r];
        char line[32];
        bool counts = is_backward(plan->op[row->op].pass) ||
                      truth_is_state(&result->plan, row->op);
        if (!counts || row->bytes < WORTH_A_LOOK ||
            row->category == MS_WORKSPACE)
            continue;
        snprintf(line, sizeof line, "%" PRIu64 "\n", row->bytes);
        for (const char *c = line; *c != '\0'; c++)
            hash = (hash ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
        (*n)++;
    }
    return hash;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void compare(const char *group, const truth_table *table, uint32_t row,
                    const ms_result *result)
{
    const ms_rank_report *rank = truth_rank(result);
    const uint64_t *level = rank->levels, *peak = rank->phase_peaks;
    uint64_t start = level[MS_MARK_START], n;
    uint64_t hash = hash_backward(result, &n);
    const struct {
        const char *column;
        uint64_t memsim;
    } quantities[] = {
        {"static_bytes", start},
        {"saved_bytes", rank->saved_for_backward_bytes},
        {"live_after_fwd_rel", level[MS_MARK_BEFORE_LOSS] - start},
        {"live_after_loss_rel", level[MS_MARK_AFTER_FORWARD] - start},
        {"live_after_bwd_rel", level[MS_MARK_AFTER_BACKWARD] - start},
        {"bwd_peak_rel_no_ws", peak[MS_PHASE_BACKWARD] - start},
        {"fwd_peak_rel_no_ws",
         larger(peak[MS_PHASE_FORWARD], peak[MS_PHASE_LOSS]) - start},
        {"allocations", n},
        {"hash", hash},
    };
    for (size_t i = 0; i < sizeof quantities / sizeof *quantities; i++)
        truth_compare(group, truth_cell(table, row, "case"),
                      quantities[i].column,
                      truth_number(table, row, quantities[i].column),
                      quantities[i].memsim);
}

START_TEST(measured_graphs)
{
    truth_table table;
    truth_begin();
    truth_read_here("opgraphs.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        char path[TESTS_PATH];
        if (!find_graph(truth_cell(&table, row, "case"), path))
            continue;
        compare("op graphs", &table, row, truth_run("%s " AS_MEASURED, path));
    }
    truth_end();
}
END_TEST

/* Which graph it is, and under which policy. */
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
        compare("nets", &table, row,
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
