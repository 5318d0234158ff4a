/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Per-op experiments: what each op saves and what its backward allocates, as
 * measured with PyTorch (rules.tsv), on the op graphs of rules.jsonl. */
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL 65u /* bytes; the table leaves out what is smaller */

/* Says whether a row belongs to the backward pass of the experiment: the
 * loss is not part of it. */
static bool counts(const ms_result *result, const ms_row *row)
{
    const ms_plan_op *op = &result->plan->op[row->op];
    if (truth_is_state(result->plan, row->op))
        return true;
    if (op->of == MS_NONE || row->bytes < SMALL ||
        result->graph->op_unit[op->of] >= result->graph->loss_unit)
        return false;
    return op->pass == MS_GRAD_INPUT || op->pass == MS_GRAD_WEIGHT ||
           op->pass == MS_RECOMPUTE;
}

/* Lists memsim's allocations as rules.tsv writes them. */
static void list(const ms_result *result, char *text, size_t room)
{
    size_t n = 0;
    snprintf(text, room, "-");
    for (uint32_t r = 0; r < result->plan->n_rows; r++) {
        const ms_row *row = &result->plan->row[r];
        if (counts(result, row))
            n += (size_t)snprintf(text + n, room - n, "%s%" PRIu64 "%s",
                                  n > 0 ? " " : "", row->bytes,
                                  row->category == MS_WORKSPACE ? "w" : "");
        ck_assert_uint_lt(n, room);
    }
}

/* The next word that stands for no scratch memory, and its length in *n;
 * NULL at the end. */
static const char *next_word(const char *at, size_t *n)
{
    for (;; at += *n) {
        at += strspn(at, " ");
        *n = strcspn(at, " ");
        if (*n == 0)
            return NULL;
        if (at[*n - 1] != 'w')
            return at;
    }
}

/* Counts the allocations of the truth, and how many of them memsim makes in
 * the same order. */
static void compare_lists(const char *name, const char *truth,
                          const char *memsim)
{
    uint64_t n_truth = 0, n_memsim = 0, alike = 0;
    size_t a, b;
    const char *y = next_word(memsim, &b);
    for (const char *x = next_word(truth, &a); x != NULL;
         x = next_word(x + a, &a)) {
        n_truth++;
        if (y == NULL || a != b || strncmp(x, y, a) != 0)
            continue;
        alike++;
        y = next_word(y + b, &b);
    }
    for (y = next_word(memsim, &b); y != NULL; y = next_word(y + b, &b))
        n_memsim++;
    truth_compare("rules", name, "backward: allocations", n_truth, n_memsim);
    truth_compare("rules", name, "backward: alike in order", n_truth, alike);
    if (n_memsim != n_truth || alike != n_truth)
        fprintf(stderr, "%s\n  truth  %s\n  memsim %s\n", name, truth, memsim);
}

static const char *policy_of(const char *name)
{
    if (strstr(name, "non-reentrant") != NULL)
        return "-p checkpoint:full,variant=nonreentrant,early_stop=0";
    if (strstr(name, "reentrant") != NULL)
        return "-p checkpoint:full,variant=reentrant";
    return "";
}

START_TEST(experiments)
{
    truth_table table;
    static char text[1 << 20];
    truth_begin();
    truth_read_here("rules.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        const char *name = truth_cell(&table, row, "case");
        char *json =
            truth_graph("rules.jsonl", truth_cell(&table, row, "graph"));
        const ms_result *result =
            truth_run_json(json,
                           "rule --optimizer sgd --framework torch-1.13 "
                           "--set training.device=cpu %s",
                           policy_of(name));
        truth_compare("rules", name, "saved",
                      truth_number(&table, row, "saved"),
                      truth_rank(result)->saved_for_backward_bytes);
        list(result, text, sizeof text);
        compare_lists(name, truth_cell(&table, row, "backward"), text);
        free(json);
    }
    truth_end();
}
END_TEST

Suite *suite_rules(void)
{
    Suite *suite = suite_create("rules");
    TCase *tcase = tcase_create("rules");
    tcase_add_test(tcase, experiments);
    suite_add_tcase(suite, tcase);
    return suite;
}
