/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The activation memory of Korthikanti et al. 2022, sections 4 and 5, and the
 * times of a layer (table 4). */
#include "sim/graph.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define SEQUENCE UINT64_C(2048)
#define VOCABULARY UINT64_C(51200)

typedef struct shape {
    const char *name;
    uint64_t a, h, layers, b, sbh;
} shape;

typedef struct levels {
    uint64_t held, saved; /* after the loss; held includes checkpoints */
} levels;

static shape shape_of(const truth_table *table, uint32_t row)
{
    shape of = {.name = truth_cell(table, row, "case"),
                .a = truth_number(table, row, "heads"),
                .h = truth_number(table, row, "hidden"),
                .layers = truth_number(table, row, "layers"),
                .b = truth_number(table, row, "batch")};
    of.sbh = SEQUENCE * of.b * of.h;
    return of;
}

static levels run(const shape *of, uint64_t layers, const char *policy)
{
    const ms_result *result =
        truth_run("gpt3 --kernels korthikanti --precision fp16-mixed "
                  "--set model.layers=%" PRIu64 " --set model.hidden=%" PRIu64
                  " --set model.heads=%" PRIu64 " --set model.vocab=%" PRIu64
                  " --batch %" PRIu64 " --sequence %" PRIu64 " -p %s",
                  layers, of->h, of->a, VOCABULARY, of->b, SEQUENCE, policy);
    const ms_rank_report *rank = truth_rank(result);
    return (levels){.held = rank->levels[MS_MARK_AFTER_FORWARD] -
                            rank->levels[MS_MARK_START],
                    .saved = rank->saved_for_backward_bytes};
}

/* sbh (34 + 5 a s / h) */
static uint64_t whole_layer(const shape *of)
{
    return 34 * of->sbh + 5 * of->a * SEQUENCE * SEQUENCE * of->b;
}

START_TEST(bytes_per_layer)
{
    truth_table table;
    truth_begin();
    truth_read_here("korthikanti.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        shape of = shape_of(&table, row);
        const struct {
            const char *policy, *quantity;
            uint64_t bytes;
        } laws[] = {
            {"none", "layer: sbh(34+5as/h)", whole_layer(&of)},
            {"checkpoint:selective", "layer, selective: 34sbh", 34 * of.sbh},
            {"checkpoint:full", "layer, full: 2sbh", 2 * of.sbh},
            /* table 2, t = 8 */
            {"tensor:8", "layer, tp: sbh(10+24/t+5as/ht)",
             10 * of.sbh + (whole_layer(&of) - 10 * of.sbh) / 8},
            {"tensor:8,sp", "layer, tp, sp: sbh/t(34+5as/h)",
             whole_layer(&of) / 8},
            {"tensor:8+checkpoint:selective",
             "layer, tp, selective: sbh(10+24/t)", 13 * of.sbh},
            {"tensor:8,sp+checkpoint:selective",
             "layer, tp, sp, selective: 34sbh/t", 34 * of.sbh / 8},
            {"tensor:8+checkpoint:full", "layer, tp, full: 2sbh", 2 * of.sbh},
        };
        for (size_t i = 0; i < sizeof laws / sizeof *laws; i++) {
            char whole[64];
            levels two = run(&of, 2, laws[i].policy);
            levels three = run(&of, 3, laws[i].policy);
            levels all = run(&of, of.layers, laws[i].policy);
            truth_compare("korthikanti", of.name, laws[i].quantity,
                          laws[i].bytes, three.held - two.held);
            snprintf(whole, sizeof whole, "L - 2 times: %s", laws[i].quantity);
            truth_compare("korthikanti", of.name, whole,
                          (of.layers - 2) * laws[i].bytes, all.held - two.held);
        }
    }
    truth_end();
}
END_TEST

/* Equation 2 and section 4.3 at t = p = 1: all layers, the embedding's dropout
 * mask sbh, and 4sbh(1 + v/h) for the last norm, the head and the logits. */
START_TEST(bytes_of_the_model)
{
    truth_table table;
    truth_begin();
    truth_read_here("korthikanti.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        shape of = shape_of(&table, row);
        uint64_t extra = 5 * of.sbh + 4 * SEQUENCE * of.b * VOCABULARY;
        truth_compare("korthikanti", of.name,
                      "model: L layers, sbh, 4sbh(1+v/h)",
                      of.layers * whole_layer(&of) + extra,
                      run(&of, of.layers, "none").saved);
        truth_compare("korthikanti", of.name, "model, selective",
                      of.layers * 34 * of.sbh + extra,
                      run(&of, of.layers, "checkpoint:selective").saved);
    }
    truth_end();
}
END_TEST

/* Checks what an op of the graph reads and writes, and its FLOPs. */
static void check_op(const ms_graph *graph, const char *name,
                     uint64_t read_bytes, uint64_t made_bytes, uint64_t flops)
{
    uint32_t op = 0;
    uint64_t made = 0;
    while (op < graph->n_ops && strcmp(graph->op_name[op], name) != 0)
        op++;
    ck_assert_uint_lt(op, graph->n_ops);
    for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++)
        made += graph->storage_bytes[graph->out[i]];
    truth_compare("korthikanti", name, "bytes made", made_bytes, made);
    truth_compare("korthikanti", name, "bytes read", read_bytes,
                  graph->op_read_bytes[op]);
    truth_compare("korthikanti", name, "FLOPs", flops,
                  (uint64_t)graph->op_flops[op]);
}

/* Section 4.3: the loss keeps its fp32 softmax, 4sbv, and allocates nothing
 * else but the loss. It does five operations a logit (the maximum of a row,
 * a difference, exp, the sum, a quotient), and two in backward (times the
 * gradient, minus the target). It reads 16-bit logits and 64-bit targets. */
START_TEST(the_loss_by_itself)
{
    const uint64_t rows = 2 * SEQUENCE, logits = rows * VOCABULARY;
    truth_begin();
    const ms_result *result = truth_run(
        "gpt3 --kernels korthikanti --precision fp16-mixed "
        "--set model.layers=1 --set model.hidden=96 --set model.vocab=%" PRIu64
        " --batch 2 --sequence %" PRIu64,
        VOCABULARY, SEQUENCE);
    check_op(result->graph, "vocab_parallel_cross_entropy",
             2 * logits + 8 * rows, 4 * logits + 4, 5 * logits);
    check_op(result->graph, "vocab_parallel_cross_entropy_backward",
             4 * logits + 4, 2 * logits, 2 * logits);
    truth_end();
}
END_TEST

START_TEST(share_saved_by_selective)
{
    truth_table table;
    truth_begin();
    truth_read_here("korthikanti.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        shape of = shape_of(&table, row);
        if (strcmp(truth_cell(&table, row, "saving_percent"), "-") == 0)
            continue;
        uint64_t none = run(&of, 3, "none").held - run(&of, 2, "none").held;
        uint64_t less = run(&of, 3, "checkpoint:selective").held -
                        run(&of, 2, "checkpoint:selective").held;
        truth_compare("korthikanti", of.name, "saved by selective, %",
                      truth_number(&table, row, "saving_percent"),
                      ((none - less) * 100 + none / 2) / none);
    }
    truth_end();
}
END_TEST

/* Forward and backward of so many layers of 22B, without the update. */
static double layers_ns(const char *policy, int layers)
{
    const ms_result *result = truth_run(
        "gpt3 --kernels korthikanti --precision fp16-mixed --device a100 "
        "--set model.layers=%d --set model.hidden=6144 --set model.heads=64 "
        "--set model.vocab=%" PRIu64 " --sequence %" PRIu64 " --batch 4 "
        "--gpus 8 --allocator exact -p %s",
        layers, VOCABULARY, SEQUENCE, policy);
    const ms_rank_report *rank = truth_rank(result);
    return (double)(rank->time.step_ns - rank->time.optimizer_ns);
}

/* Table 4: what sharing the sequence and recomputation make of a layer. */
START_TEST(times_of_a_layer)
{
    truth_table table;
    double base = 0, measured_base = 0;
    truth_begin();
    truth_read_here("korthikanti_layers.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        const char *policy = truth_cell(&table, row, "policy");
        double measured = (double)truth_number(&table, row, "tenths_of_ms");
        double told = layers_ns(policy, 3) - layers_ns(policy, 2);
        uint64_t most = truth_number(&table, row, "within");
        base = row == 0 ? told : base;
        measured_base = row == 0 ? measured : measured_base;
        double error = fabs(told / base / (measured / measured_base) - 1);
        uint64_t off = (uint64_t)ceil(1e3 * error - 1e-9);
        truth_compare("korthikanti", policy,
                      "time of a layer to the first, error in 0.1 %", most,
                      off > most ? off : most);
    }
    truth_end();
}
END_TEST

Suite *suite_korthikanti(void)
{
    Suite *suite = suite_create("korthikanti");
    TCase *tcase = tcase_create("korthikanti");
    tcase_add_test(tcase, bytes_per_layer);
    tcase_add_test(tcase, bytes_of_the_model);
    tcase_add_test(tcase, the_loss_by_itself);
    tcase_add_test(tcase, share_saved_by_selective);
    tcase_add_test(tcase, times_of_a_layer);
    suite_add_tcase(suite, tcase);
    return suite;
}
