/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Peaks of single operators, plain and in Liger's kernels, on an A100, from
 * Liger's benchmarks: each is a small model.  What the scripts hold beside it:
 *
 *   the gradient of x of the call before, which x.grad keeps;
 *   the gradient of the result, which they give to backward and keep;
 *   what was saved for backward, by retain_graph=True;
 *   cuBLAS's workspaces of the threads that multiplied before;
 *   of the head with its loss, the weight of the other implementation. */
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/timeline.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <stdio.h>
#include <string.h>

enum { MODEL_BYTES = 1024 };
enum { CUBLAS = 8519680 };
enum { ROWS = 16384, NORM_ROWS = 4096, RMS_ROWS = 2048 };
enum { WIDTH = 4096, FFN = 11008, VOCAB = 128256 };
enum { HEADS = 32, KV_HEADS = 8, ROPE_WIDTH = 8192, ROPE_SEQUENCE = 2048 };

typedef struct bench {
    const char *settings; /* settings besides those that all benches share */
    uint64_t batch, held; /* held: bytes besides the model's */
    uint64_t workspaces;
    char layers[MODEL_BYTES];
} bench;

#define X "{\"type\": \"op\", \"name\": \"x\", \"shape\": "
#define GIVEN "{\"type\": \"mean\", \"name\": \"given\"}"
#define KEEPS "--set retain_graph=yes --set zero_grad=keep"

static void cross_entropy(bench *b, bool liger, uint64_t vocab)
{
    b->settings = "--precision fp32 " KEEPS;
    b->batch = ROWS;
    b->held = liger ? 0 : 4 * ROWS * vocab; /* else x.grad is x itself */
    snprintf(b->layers, sizeof b->layers,
             X "[%llu]}, {\"type\": \"cross_entropy\", \"kernel\": \"%s\"}",
             (unsigned long long)vocab, liger ? "liger" : "eager");
}

/* The script holds both implementations of the head and runs one of them. */
static void linear_cross_entropy(bench *b, bool liger, uint64_t rows)
{
    b->settings = "--precision bf16 --set hold_output=none "
                  "--set zero_grad=keep";
    b->batch = rows;
    b->held = 2 * WIDTH * (VOCAB + rows);
    b->workspaces = 2;
    snprintf(b->layers, sizeof b->layers,
             X "[%d]}, {\"type\": \"linear\", \"out\": %d, \"bias\": false}, "
               "{\"type\": \"cross_entropy\", \"kernel\": \"%s\"}",
             WIDTH, VOCAB, liger ? "liger_linear" : "eager");
}

static void layer_norm(bench *b, bool liger, uint64_t width)
{
    b->settings = liger ? "--precision fp32 --set norm_kernel=liger " KEEPS
                        : "--precision fp32 --set norm_kernel=torch " KEEPS;
    b->batch = NORM_ROWS;
    b->held = 4 * NORM_ROWS * width;
    snprintf(b->layers, sizeof b->layers,
             X "[%llu]}, {\"type\": \"layer_norm\"}, " GIVEN,
             (unsigned long long)width);
}

/* The plain norm has an fp32 weight and therefore an fp32 result. The script
 * casts it, so that it holds x, the gradient of x and that cast. */
static void rms_norm(bench *b, bool liger, uint64_t width)
{
    uint64_t copy = 2 * RMS_ROWS * width;
    b->settings = liger ? "--precision bf16 --set norm_kernel=liger " KEEPS
                        : "--precision fp32 --set norm_kernel=eager " KEEPS;
    b->batch = RMS_ROWS;
    b->held = liger ? copy : 3 * copy;
    snprintf(b->layers, sizeof b->layers,
             X "[%llu]}, %s{\"type\": \"rms_norm\", \"upcast\": true}, " GIVEN,
             (unsigned long long)width,
             liger ? "" : "{\"type\": \"cast\", \"to\": \"bfloat16\"}, ");
}

/* Where only the forward pass runs there are no gradients. */
static void gate(bench *b, const char *type, bool liger, bool forward,
                 uint64_t sequence)
{
    static const char *const settings[2][2] = {
        {"--precision bf16 --set activation_kernel=eager " KEEPS,
         "--precision bf16 --set activation_kernel=eager"},
        {"--precision bf16 --set activation_kernel=fused " KEEPS,
         "--precision bf16 --set activation_kernel=fused"}};
    b->settings = settings[liger][forward];
    b->batch = strcmp(type, "swiglu") == 0 ? 4 : 8;
    b->held = forward ? 0 : 2 * WIDTH * b->batch * sequence;
    b->workspaces = 2;
    snprintf(b->layers, sizeof b->layers,
             X "[%llu, %d]}, "
               "{\"type\": \"linear\", \"name\": \"gate\", \"out\": %d, "
               "\"bias\": false}, "
               "{\"type\": \"linear\", \"name\": \"up\", \"out\": %d, "
               "\"bias\": false, \"inputs\": [\"x\"]}, "
               "{\"type\": \"%s\", \"inputs\": [\"gate\", \"up\"]}, "
               "{\"type\": \"linear\", \"out\": %d, \"bias\": false}, " GIVEN,
             (unsigned long long)sequence, WIDTH, FFN, FFN, type, WIDTH);
}

/* The script holds queries and keys, each with the gradient that it gives to
 * backward; the tables of angles were made by a product. */
static void rope(bench *b, uint64_t sequence, uint64_t width)
{
    unsigned long long s = sequence, dim = width / HEADS;
    b->settings = "--precision bf16 --set rotary_kernel=fused " KEEPS;
    b->batch = 1;
    b->workspaces = 1;
    snprintf(b->layers, sizeof b->layers,
             X "[%d, %llu, %llu]}, {\"type\": \"rotary\"}, "
               "{\"type\": \"op\", \"name\": \"given_q\", \"shape\": [1], "
               "\"saves\": \"input\"}, "
               "{\"type\": \"op\", \"shape\": [%d, %llu, %llu], "
               "\"inputs\": [\"input\"]}, {\"type\": \"rotary\"}, "
               "{\"type\": \"op\", \"name\": \"given_k\", \"shape\": [1], "
               "\"saves\": \"input\"}, "
               "{\"type\": \"add\", \"inputs\": [\"given_q\", \"given_k\"]}, "
               "{\"type\": \"mean\"}",
             HEADS, s, dim, KV_HEADS, s, dim);
}

static void make(const truth_table *table, uint32_t row, bench *b)
{
    const char *op = truth_cell(table, row, "operator");
    const char *sweeps = truth_cell(table, row, "sweeps");
    bool liger = strcmp(truth_cell(table, row, "code"), "liger") == 0;
    bool forward = strcmp(truth_cell(table, row, "mode"), "forward") == 0;
    uint64_t x = truth_number(table, row, "x");
    *b = (bench){.batch = 0};
    if (strcmp(op, "cross_entropy") == 0)
        cross_entropy(b, liger, x);
    else if (strcmp(op, "fused_linear_cross_entropy") == 0)
        linear_cross_entropy(b, liger, x);
    else if (strcmp(op, "layer_norm") == 0)
        layer_norm(b, liger, x);
    else if (strcmp(op, "rms_norm") == 0)
        rms_norm(b, liger, x);
    else if (strcmp(op, "rope") == 0)
        rope(b, *sweeps == 'T' ? x : ROPE_SEQUENCE,
             *sweeps == 'H' ? x : ROPE_WIDTH);
    else
        gate(b, op, liger, forward, x);
}

/* ---- the peak ------------------------------------------------------------ */

/* Leaves out the gradients that the script gives, which stay, and the
 * workspaces, which it counts apart. */
static bool is_given(const ms_result *result, const ms_row *row)
{
    const ms_graph *graph = result->graph;
    if (row->storage == MS_NONE ||
        graph->storage_layer[row->storage] == MS_NONE)
        return false;
    const char *layer = graph->layer_name[graph->storage_layer[row->storage]];
    return strncmp(layer, "given", 5) == 0 &&
           strcmp(graph->storage_name[row->storage], "grad") == 0;
}

static uint64_t peak_of(const ms_result *result, bool forward)
{
    const ms_plan *plan = result->plan;
    uint64_t now = 0, peak = 0;
    for (uint32_t e = 0; e < result->line->n_events; e++) {
        const ms_row *row = &plan->row[result->line->events[e].row];
        uint32_t act = result->line->events[e].op_act;
        uint32_t of = plan->op[act >> 1].of;
        if (forward && of != MS_NONE &&
            result->graph->op_pass[of] != MS_FORWARD)
            break;
        if (row->pool != MS_DEVICE_POOL || row->category == MS_WORKSPACE)
            continue;
        if (act & 1u)
            now += row->bytes;
        else if (!is_given(result, row))
            now -= row->bytes;
        peak = now > peak ? now : peak;
    }
    return peak;
}

static void compare(const truth_table *table, uint32_t row)
{
    const char *name = truth_cell(table, row, "case");
    bool forward = strcmp(truth_cell(table, row, "mode"), "forward") == 0;
    double truth = (double)truth_number(table, row, "peak_bytes");
    char json[2 * MODEL_BYTES];
    bench b;
    make(table, row, &b);
    snprintf(json, sizeof json,
             "{\"memsim\": 1, \"name\": \"y\", \"input\": {\"shape\": [1]}, "
             "\"layers\": [%s]}",
             b.layers);
    const ms_result *result =
        truth_run_json(json, "y --device a100 --optimizer none --batch %llu %s",
                       (unsigned long long)b.batch, b.settings);
    double memsim =
        (double)(peak_of(result, forward) + b.held + b.workspaces * CUBLAS);
    double off = memsim / truth - 1;
    truth_compare("liger", name, "peak, within 2 %: 1", 1,
                  off <= 0.02 && off >= -0.02);
}

START_TEST(operators)
{
    truth_table table;
    truth_begin();
    truth_read_here("liger.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++)
        compare(&table, row);
    truth_end();
}
END_TEST

Suite *suite_liger(void)
{
    Suite *suite = suite_create("liger");
    TCase *tcase = tcase_create("liger");
    tcase_add_test(tcase, operators);
    suite_add_tcase(suite, tcase);
    return suite;
}
