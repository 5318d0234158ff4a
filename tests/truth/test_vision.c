/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Built-in networks against measured steps of PyTorch, and against what
 * other tools count in them. */
#include "graphs/modelgraph.h"
#include "sim/graph.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"

#include "graphs/models/build.h"
#include "tools/job/result.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define EAGER                                                                  \
    "--kernels eager --precision fp32 --framework torch-1.13 "                 \
    "--set training.device=cpu"

/* ---- steps of PyTorch ---------------------------------------------------- */

START_TEST(measured_builtins)
{
    truth_table table;
    truth_begin();
    truth_read_here("vision.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++)
        truth_step("vision", &table, row,
                   truth_builtin(truth_cell(&table, row, "case")));
    truth_end();
}
END_TEST

/* ---- layers as torchinfo and torchsummary print them --------------------- */

static const ms_layer *layer_of(const ms_result *result,
                                const ms_layer_facts *facts)
{
    for (uint32_t l = 0; l < result->model.n_layers; l++)
        if (result->model.layers[l].name == facts->name)
            return &result->model.layers[l];
    ck_abort_msg("%s", facts->name);
    return NULL;
}

/* Output elements, all in fp32. */
static uint64_t elements_of(const ms_layer_facts *facts)
{
    return facts->output_bytes / 4;
}

/* The last dimension of the output, or its channels. */
static uint64_t width_of(const ms_result *result, const ms_layer_facts *facts)
{
    ms_layer layer = *layer_of(result, facts);
    bool recurrent = strcmp(facts->type, "lstm") == 0;
    return (uint64_t)ms_build_field(&layer, recurrent ? "hidden" : "out")->i;
}

static bool has_positions(const ms_layer_facts *facts)
{
    return strncmp(facts->type, "conv", 4) == 0 ||
           strcmp(facts->type, "linear") == 0 ||
           strcmp(facts->type, "lstm") == 0;
}

static uint64_t mult_adds(const ms_result *result, const ms_layer_facts *facts)
{
    uint64_t batch = (uint64_t)result->training.batch;
    if (!has_positions(facts))
        return facts->parameters * batch;
    return facts->parameters * (elements_of(facts) / width_of(result, facts));
}

static uint64_t rounded(uint64_t value, uint64_t unit)
{
    return (value + unit / 2) / unit * unit;
}

START_TEST(totals_of_torchinfo)
{
    truth_table table;
    truth_begin();
    truth_read_here("torchinfo.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        ms_arena arena = {0};
        ms_fault fault = {0};
        ms_layer_facts *facts = NULL;
        uint64_t macs = 0, bytes = 0;
        const char *name = truth_cell(&table, row, "case");
        const ms_result *result =
            truth_run("%s " EAGER, truth_cell(&table, row, "command"));
        ck_assert_int_eq(ms_lower_facts(&result->model, result->graph, &arena,
                                        &facts, &fault),
                         MS_OK);
        for (uint32_t i = 0; i < result->model.n_layers; i++) {
            if (facts[i].parameters == 0)
                continue;
            macs += mult_adds(result, &facts[i]);
            bytes += 2 * facts[i].output_bytes;
        }
        truth_compare("torchinfo", name, "parameters",
                      truth_number(&table, row, "parameters"),
                      result->graph->parameters);
        truth_compare(
            "torchinfo", name, "mult-adds",
            truth_number(&table, row, "mult_adds"),
            rounded(macs, truth_number(&table, row, "mult_adds_unit")));
        truth_compare("torchinfo", name, "pass, bytes",
                      truth_number(&table, row, "bytes"),
                      rounded(bytes, truth_number(&table, row, "bytes_unit")));
        ms_arena_free(&arena);
    }
    truth_end();
}
END_TEST

/* Compares the n-th layer of the row's type. */
static void compare_layer(const truth_table *table, uint32_t row,
                          const ms_layer_facts *facts, uint32_t n_facts)
{
    uint64_t n = truth_number(table, row, "n");
    const char *type = truth_cell(table, row, "type");
    char name[128];
    snprintf(name, sizeof name, "%s, %s %u", truth_cell(table, row, "case"),
             type, (unsigned)n);
    for (uint32_t i = 0; i < n_facts; i++) {
        if (strcmp(facts[i].type, type) != 0 || n-- > 0)
            continue;
        truth_compare("torchinfo", name, "elements of the output",
                      truth_number(table, row, "elements"),
                      elements_of(&facts[i]));
        truth_compare("torchinfo", name, "parameters",
                      truth_number(table, row, "parameters"),
                      facts[i].parameters);
        return;
    }
    ck_abort_msg("no %s", name);
}

START_TEST(layers_of_torchinfo)
{
    truth_table table;
    const ms_result *result = NULL;
    const char *last = "";
    ms_layer_facts *facts = NULL;
    ms_arena arena = {0};
    ms_fault fault = {0};
    truth_begin();
    truth_read_here("torchinfo_layers.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        const char *command = truth_cell(&table, row, "command");
        if (strcmp(command, last) != 0) {
            last = command;
            result = truth_run("%s " EAGER, command);
            ck_assert_int_eq(ms_lower_facts(&result->model, result->graph,
                                            &arena, &facts, &fault),
                             MS_OK);
        }
        compare_layer(&table, row, facts, result->model.n_layers);
    }
    ms_arena_free(&arena);
    truth_end();
}
END_TEST

/* ---- fvcore's counts ----------------------------------------------------- */

static bool is_product(const char *op)
{
    static const char *const ops[] = {"aten::convolution", "aten::addmm",
                                      "aten::mm", "aten::bmm"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(op, ops[i]) == 0)
            return true;
    return false;
}

/* The operations that fvcore counts for norms at inference, per element. */
static double norms(const ms_result *result)
{
    ms_arena arena = {0};
    ms_fault fault = {0};
    ms_layer_facts *facts = NULL;
    double sum = 0;
    ck_assert_int_eq(
        ms_lower_facts(&result->model, result->graph, &arena, &facts, &fault),
        MS_OK);
    for (uint32_t i = 0; i < result->model.n_layers; i++)
        if (strcmp(facts[i].type, "batch_norm") == 0)
            sum += 2 * (double)elements_of(&facts[i]);
        else if (strcmp(facts[i].type, "layer_norm") == 0)
            sum += 5 * (double)elements_of(&facts[i]);
    ms_arena_free(&arena);
    return sum;
}

/* Both numbers must be within 1 % of what is printed; the last digit is not
 * compared. */
static void compare_near(const char *name, const char *quantity, uint64_t truth,
                         double memsim)
{
    double far = fabs(memsim - (double)truth);
    bool near = far <= 0.01 * (double)truth + 0.5;
    truth_compare("timm", name, quantity, truth,
                  near ? truth : (uint64_t)(memsim + 0.5));
}

START_TEST(counts_of_timm)
{
    truth_table table;
    truth_begin();
    truth_read_here("timm.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        const char *name = truth_cell(&table, row, "case");
        const ms_result *result =
            truth_run("%s " EAGER, truth_cell(&table, row, "command"));
        const ms_graph *graph = result->graph;
        double macs = norms(result), elements = 0;
        for (uint32_t op = 0; op < graph->step_first; op++) {
            if (graph->op_pass[op] != MS_FORWARD ||
                !is_product(graph->op_name[op]))
                continue;
            macs += graph->op_flops[op] / 2;
            elements +=
                (double)graph->storage_bytes[graph->out[graph->out_at[op]]] / 4;
        }
        truth_compare("timm", name, "parameters, 10^4",
                      truth_number(&table, row, "parameters"),
                      (result->graph->parameters + 5000) / 10000);
        compare_near(name, "mult-adds within 1 %, 10^7",
                     truth_number(&table, row, "mult_adds"), macs / 1e7);
        compare_near(name, "activations within 1 %, 10^4",
                     truth_number(&table, row, "activations"), elements / 1e4);
    }
    truth_end();
}
END_TEST

Suite *suite_vision(void)
{
    Suite *suite = suite_create("vision");
    TCase *tcase = tcase_create("vision");
    tcase_add_test(tcase, measured_builtins);
    tcase_add_test(tcase, totals_of_torchinfo);
    tcase_add_test(tcase, layers_of_torchinfo);
    tcase_add_test(tcase, counts_of_timm);
    suite_add_tcase(suite, tcase);
    return suite;
}
