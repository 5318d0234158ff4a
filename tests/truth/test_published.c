/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers that others published: parameters, FLOPs and multiply-adds, to the
 * digits printed (published.tsv), runs that fitted or did not (fits.tsv),
 * measured steps, and what changes between two of them (changes.tsv). */
#include "sim/graph.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EAGER                                                                  \
    "--kernels eager --precision fp32 --framework torch-1.13 "                 \
    "--set training.device=cpu "

/* ---- the model of a row -------------------------------------------------- */

/* Runs a built-in model, NAME.json of files/, or a config.json that is in
 * the cell itself. */
static const ms_result *run(const char *model, const char *options)
{
    char path[TESTS_PATH], relative[TESTS_PATH];
    const char *words = strcmp(options, "-") == 0 ? "" : options;
    if (*model == '{')
        return truth_run_json(model, "config.json %s", words);
    if (strstr(model, ".json") == NULL)
        return truth_run("%s %s", model, words);
    snprintf(relative, sizeof relative, "tests/truth/files/%s", model);
    tests_source(relative, path);
    return truth_run("%s %s", path, words);
}

/* ---- counts -------------------------------------------------------------- */

typedef struct passes {
    bool forward, backward;
} passes;

static bool counts_in(const ms_graph *graph, uint32_t op, passes in)
{
    uint8_t pass = graph->op_pass[op];
    return pass == MS_FORWARD ? in.forward : pass > MS_LOSS && in.backward;
}

/* The FLOPs of matrix products and convolutions, or only those of attention
 * scores. */
static double products(const ms_graph *graph, passes in, unsigned flags)
{
    double sum = 0;
    for (uint32_t op = 0; op < graph->step_first; op++)
        if ((graph->op_flags[op] & flags) == flags && counts_in(graph, op, in))
            sum += graph->op_flops[op];
    return sum;
}

/* Elements of the largest output, all fp32. */
static double elements(const ms_graph *graph, uint32_t op)
{
    uint64_t most = 0;
    for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++)
        if (graph->storage_bytes[graph->out[i]] > most)
            most = graph->storage_bytes[graph->out[i]];
    return (double)most / 4;
}

/* The elements that ops of this name write, or their multiply-adds. */
static double by_name(const ms_graph *graph, passes in, const char *name,
                      size_t length, bool macs)
{
    double sum = 0;
    for (uint32_t op = 0; op < graph->step_first; op++) {
        const char *is = graph->op_name[op];
        const char *colon = strrchr(is, ':');
        is = colon != NULL ? colon + 1 : is;
        if (strncmp(is, name, length) != 0 || is[length] != '\0' ||
            !counts_in(graph, op, in))
            continue;
        sum += macs ? graph->op_flops[op] / 2 : elements(graph, op);
    }
    return sum;
}

static double term(const ms_result *result, passes in, const char *name,
                   size_t length)
{
    const ms_graph *graph = result->graph;
    static const struct {
        const char *name;
        unsigned flags;
        double share;
    } known[] = {{"flops", MS_OP_MATRIX, 1},
                 {"macs", MS_OP_MATRIX, 0.5},
                 {"scores", MS_OP_MATRIX | MS_OP_CORE, 1}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].name) == length &&
            strncmp(known[i].name, name, length) == 0)
            return known[i].share * products(graph, in, known[i].flags);
    if (strncmp(name, "parameters", length) == 0)
        return (double)graph->parameters;
    bool macs = strncmp(name, "macs:", 5) == 0;
    return macs ? by_name(graph, in, name + 5, length - 5, true)
                : by_name(graph, in, name, length, false);
}

/* Evaluates a count: terms joined by + and -, each NAME or N*NAME. "flops"
 * and "macs" are those of products, "scores" the FLOPs of Q K^T; any other
 * name stands for the elements that the ops aten::NAME write. */
static double counted(const ms_result *result, passes in, const char *counts)
{
    double sum = 0, sign = 1;
    for (const char *at = counts; *at != '\0'; at++) {
        double times = 1;
        char *end = strpbrk(at, "0123456789") == at ? NULL : (char *)at;
        if (end == NULL) {
            times = strtod(at, &end);
            end += *end == '*';
        }
        size_t length = strcspn(end, "+-");
        times *= length > 0 ? term(result, in, end, length) : 1;
        sum += sign * times;
        length += (size_t)(end - at);
        at += length;
        if (*at == '\0')
            break;
        sign = *at == '-' ? -1 : 1;
    }
    return sum;
}

static uint64_t rounded(double value, uint64_t unit)
{
    return (uint64_t)(value / (double)unit + 0.5) * unit;
}

static uint64_t count(const truth_table *table, uint32_t row, char *quantity,
                      size_t size)
{
    char options[512];
    const char *its = truth_cell(table, row, "options");
    bool plain = strstr(its, "--kernels") == NULL;
    snprintf(options, sizeof options, "%s%s", plain ? EAGER : "",
             strcmp(its, "-") == 0 ? "" : its);
    const ms_result *result = run(truth_cell(table, row, "model"), options);
    const char *counts = truth_cell(table, row, "counts");
    const char *pass = truth_cell(table, row, "pass");
    passes in = {strcmp(pass, "backward") != 0, strcmp(pass, "forward") != 0};
    snprintf(quantity, size, "%s%s%s", *pass == '-' ? "" : pass,
             *pass == '-' ? "" : " ", counts);
    return rounded(counted(result, in, counts),
                   truth_number(table, row, "unit"));
}

START_TEST(counts)
{
    truth_table table;
    truth_begin();
    truth_read_here("published.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        char quantity[128];
        uint64_t value = count(&table, row, quantity, sizeof quantity);
        truth_compare("published", truth_cell(&table, row, "id"), quantity,
                      truth_number(&table, row, "truth"), value);
    }
    truth_end();
}
END_TEST

/* ---- one-sided rows ------------------------------------------------------ */

START_TEST(fits)
{
    truth_table table;
    truth_begin();
    truth_read_here("fits.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        const ms_result *result = run(truth_cell(&table, row, "model"),
                                      truth_cell(&table, row, "options"));
        truth_compare_words("fits", truth_cell(&table, row, "id"),
                            "fits or out of memory: 1 where as it was",
                            truth_cell(&table, row, "outcome"),
                            result->report->fits ? "fits" : "over");
    }
    truth_end();
}
END_TEST

/* ---- measured steps ------------------------------------------------------ */

static double measured(const ms_result *result, const char *quantity)
{
    const ms_rank_report *rank = &result->report->ranks[0];
    const struct {
        const char *name;
        uint64_t bytes;
    } known[] = {
        {"parameters", rank->parameters_bytes},
        {"optimizer state", rank->optimizer_state_bytes},
        {"start", rank->levels[MS_MARK_START]},
        {"after forward", rank->levels[MS_MARK_AFTER_FORWARD]},
        {"after backward", rank->levels[MS_MARK_AFTER_BACKWARD]},
        {"saved", rank->saved_for_backward_bytes},
        {"above the end of backward",
         rank->peak.allocated_bytes - rank->levels[MS_MARK_AFTER_BACKWARD]},
        {"states", rank->parameters_bytes + rank->gradients_bytes +
                       rank->optimizer_state_bytes},
        {"allocated", rank->peak.allocated_bytes},
        {"active", rank->peak.active_bytes},
        {"reserved", rank->peak.reserved_bytes}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, quantity) == 0)
            return (double)known[i].bytes;
    ck_abort_msg("%s", quantity);
    return 0;
}

/* Compares memsim's number in percent of the truth; a number that is near
 * enough counts as 100. */
static void compare_change(const truth_table *table, uint32_t row)
{
    const char *model = truth_cell(table, row, "model");
    const char *less = truth_cell(table, row, "less");
    const char *quantity = truth_cell(table, row, "quantity");
    double unit = strtod(truth_cell(table, row, "unit"), NULL);
    double truth = strtod(truth_cell(table, row, "truth"), NULL);
    double share = strtod(truth_cell(table, row, "within"), NULL);
    double value =
        measured(run(model, truth_cell(table, row, "options")), quantity);
    char name[96];
    if (strcmp(less, "=") != 0)
        value -= measured(run(model, less), quantity);
    double percent = 100 * value / unit / truth;
    bool near = percent >= 100 - share && percent <= 100 + share;
    snprintf(name, sizeof name, "%s, %% of truth, 100: within %g", quantity,
             share);
    truth_compare("changes", truth_cell(table, row, "id"), name, 100,
                  near ? 100 : (uint64_t)(percent + 0.5));
}

START_TEST(changes)
{
    truth_table table;
    truth_begin();
    truth_read_here("changes.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++)
        compare_change(&table, row);
    truth_end();
}
END_TEST

/* ---- orders -------------------------------------------------------------- */

/* The rows of a group are sorted from the most measured memory to the least. */
START_TEST(orders)
{
    truth_table table;
    uint64_t before = 0;
    const char *group = "";
    truth_begin();
    truth_read_here("orders.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        const char *its = truth_cell(&table, row, "group");
        uint64_t bytes = run(truth_cell(&table, row, "model"),
                             truth_cell(&table, row, "options"))
                             ->report->ranks[0]
                             .peak.reserved_bytes;
        if (strcmp(its, group) == 0)
            truth_compare("orders", truth_cell(&table, row, "id"),
                          "reserved, less than the row before: 1", 1,
                          bytes < before);
        group = its;
        before = bytes;
    }
    truth_end();
}
END_TEST

Suite *suite_published(void)
{
    Suite *suite = suite_create("published");
    TCase *tcase = tcase_create("published");
    tcase_set_timeout(tcase, 240);
    tcase_add_test(tcase, counts);
    tcase_add_test(tcase, fits);
    tcase_add_test(tcase, changes);
    tcase_add_test(tcase, orders);
    suite_add_tcase(suite, tcase);
    return suite;
}
