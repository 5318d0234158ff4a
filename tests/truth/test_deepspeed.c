/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define RANKS 8u

/* ---- the estimators (policies/sources.md 4) ------------------------------ */

/* A model with as many parameters as t5-3b, 2,851,598,336, none of whose
 * layers is larger than t5-3b's largest, the embedding of 32128 x 1024. */
static const char *const t5_3b =
    "{\"memsim\": 1, \"name\": \"t5-3b\", \"input\": {\"shape\": [1024]}, "
    "\"layers\": [{\"repeat\": 43, \"layers\": ["
    "{\"type\": \"linear\", \"out\": 32128, \"bias\": false}, "
    "{\"type\": \"linear\", \"out\": 1024, \"bias\": false}]}, "
    "{\"type\": \"linear\", \"out\": 21756, \"bias\": false}, "
    "{\"type\": \"mean\"}]}";

static uint64_t hundredths(uint64_t bytes)
{
    return (bytes * 100 + (1u << 29)) >> 30;
}

/* The bytes of the largest row with this name, whenever it is alive. */
static uint64_t made_bytes(const ms_result *result, const char *name)
{
    uint64_t most = 0;
    for (uint32_t r = 0; r < result->plan->n_rows; r++) {
        uint32_t s = result->plan->row[r].storage;
        if (s != MS_NONE && strcmp(result->graph->storage_name[s], name) == 0 &&
            result->plan->row[r].bytes > most)
            most = result->plan->row[r].bytes;
    }
    return most;
}

/* The levels of the device at the start of the optimizer's step, after the
 * norms of parts, which are taken before the parts leave. */
static void at_step(const ms_result *result, uint64_t held[MS_N_CATEGORIES])
{
    const ms_plan *plan = result->plan;
    for (uint32_t e = 0; e < result->line->n_events; e++) {
        const ms_row *row = &plan->row[result->line->events[e].row];
        uint32_t act = result->line->events[e].op_act;
        uint32_t of = plan->op[act >> 1].of;
        if (of != MS_NONE && of >= result->graph->step_all)
            return;
        if (row->pool == MS_DEVICE_POOL)
            held[row->category] += act & 1u ? row->bytes : 0 - row->bytes;
    }
}

/* What the estimators count: the states and the fp32 gradients of the step.
 * For stage 3 they add a whole layer and its gradient, and omit the 16-bit
 * partition of the gradients, which stage3.py allocates at the start. */
static uint64_t estimated(const ms_result *result, unsigned stage)
{
    uint64_t held[MS_N_CATEGORIES] = {0}, layer = 0;
    at_step(result, held);
    uint64_t bytes = held[MS_PARAMETERS] + held[MS_OPTIMIZER_STATE] +
                     made_bytes(result, "fp32_gradients");
    if (stage < 3)
        return bytes + held[MS_GRADIENTS];
    for (uint32_t s = 0; s < result->graph->n_persistent; s++)
        if (ms_graph_is_weight(result->graph, s) &&
            2 * result->graph->storage_bytes[s] > layer)
            layer = 2 * result->graph->storage_bytes[s];
    return bytes + layer;
}

START_TEST(estimators)
{
    truth_table table;
    truth_begin();
    truth_read_here("deepspeed.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        unsigned stage = (unsigned)truth_number(&table, row, "stage");
        const char *offload = truth_cell(&table, row, "offload");
        char name[64], policy[64] = "";
        snprintf(name, sizeof name, "t5-3b, stage %u, %s offloaded", stage,
                 offload);
        if (strcmp(offload, "none") != 0)
            snprintf(policy, sizeof policy, "+offload:%s,impl=deepspeed",
                     offload);
        const ms_result *result =
            truth_run_json(t5_3b,
                           "t5-3b --precision fp16-mixed --optimizer adam "
                           "-p zero:%u,dp=8,impl=deepspeed%s",
                           stage, policy);
        ck_assert_uint_eq(result->graph->parameters, 2851598336);
        truth_compare("deepspeed", name, "states, 0.01 GiB",
                      truth_number(&table, row, "hundredths"),
                      hundredths(estimated(result, stage)));
    }
    truth_end();
}
END_TEST

/* ---- measured (deepspeed_runs.tsv) --------------------------------------- */

START_TEST(peaks)
{
    truth_table table;
    char path[TESTS_PATH];
    truth_begin();
    truth_read_here("deepspeed_runs.tsv", &table);
    tests_source("tests/truth/files/post-norm.json", path);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        const ms_result *result = truth_run(
            "%s --precision bf16-mixed --batch %s --set model.layers=%s "
            "--set model.hidden=%s --set model.heads=%s --kernels eager --set "
            "training.hold_output=step --set training.optimizer_impl=fused -p "
            "zero:3,dp=%s,impl=deepspeed,reduce_bucket_size=5e7,"
            "mem_efficient_linear=0+checkpoint:%s",
            path, truth_cell(&table, row, "batch"),
            truth_cell(&table, row, "layers"),
            truth_cell(&table, row, "hidden"), truth_cell(&table, row, "heads"),
            truth_cell(&table, row, "ranks"),
            truth_cell(&table, row, "checkpoint"));
        truth_compare("deepspeed", truth_cell(&table, row, "name"),
                      "peak, 0.01 GiB", truth_number(&table, row, "hundredths"),
                      hundredths(truth_rank(result)->peak.allocated_bytes));
    }
    truth_end();
}
END_TEST

/* ---- what a rank holds (policies/sources.md 4) --------------------------- */

static const char *const layers =
    "{\"memsim\": 1, \"name\": \"mlp\", \"input\": {\"shape\": [%u]}, "
    "\"layers\": [{\"type\": \"linear\", \"out\": %u}, "
    "{\"type\": \"linear\", \"out\": %u}, {\"type\": \"relu\"}, "
    "{\"type\": \"linear\", \"out\": 1}, {\"type\": \"mean\"}]}";

/* The elements of this rank's parts of all parameters, from its master
 * copies of 4 bytes an element. */
static uint64_t part_elements(const ms_graph *graph, uint32_t *parameters)
{
    uint64_t bytes = 0;
    *parameters = 0;
    for (uint32_t s = 0; s < graph->n_persistent; s++) {
        bool master = strcmp(graph->storage_name[s], "master") == 0;
        bytes += master ? graph->storage_bytes[s] : 0;
        *parameters += master;
    }
    return bytes / 4;
}

/* Every rank has parts of the same size. Together they hold all parameters
 * and padding: less than 2 N elements in the one group of stages 1 and 2,
 * less than N per parameter in stage 3. */
static void check_parts(unsigned stage, unsigned ranks, unsigned width)
{
    char json[400];
    uint32_t parameters;
    snprintf(json, sizeof json, layers, width, width + 1, 2 * width);
    const ms_result *result = truth_run_json(
        json, "mlp -p zero:%u,dp=%u,impl=deepspeed", stage, ranks);
    uint64_t all = result->graph->parameters;
    uint64_t held = part_elements(result->graph, &parameters) * ranks;
    uint64_t most = stage == 3 ? (uint64_t)ranks * parameters : 2u * ranks;
    ck_assert_uint_eq(parameters, 6);
    ck_assert_uint_ge(held, all);
    ck_assert_uint_lt(held - all, most);
    if (stage < 3)
        ck_assert_uint_eq(held % (2u * ranks), 0);
    ck_assert_uint_eq(truth_rank(result)->optimizer_state_bytes,
                      12 * held / ranks);
    ck_assert_uint_le(truth_rank(result)->gradients_bytes,
                      stage == 1 ? 2 * all + 2 * held / ranks
                                 : 2 * held / ranks);
}

START_TEST(parts)
{
    static const unsigned ranks[] = {1, 2, 3, 8, 64, 1000};
    truth_begin();
    for (unsigned stage = 1; stage <= 3; stage++)
        for (unsigned r = 0; r < sizeof ranks / sizeof *ranks; r++)
            for (unsigned width = 1; width <= 33; width += 8)
                check_parts(stage, ranks[r], width);
    truth_end();
}
END_TEST

/* ---- what a rank sends (policies/sources.md 4) --------------------------- */

/* Compares what a step sends, in halves of a percent of the model's 16-bit
 * bytes. */
static void check_volume(unsigned stage, unsigned micro_batches,
                         const char *how, uint64_t models)
{
    char name[192];
    const ms_result *result =
        truth_run("llama-2-7b --batch 4 -p zero:%u,dp=8%s+microbatch:%u", stage,
                  how, micro_batches);
    uint64_t model_bytes = 2 * result->graph->parameters;
    uint64_t sent = truth_rank(result)->comm_bytes * RANKS / (RANKS - 1);
    snprintf(name, sizeof name, "stage %u%s, %u micro-batches", stage, how,
             micro_batches);
    truth_compare("deepspeed", name, "times the model, sent, 0.5 %",
                  200 * models, (200 * sent + model_bytes / 2) / model_bytes);
}

#define EACH ",impl=deepspeed,use_multi_rank_bucket_allreduce=0"
#define NOTHING_KEPT                                                           \
    ",impl=deepspeed,param_persistence_threshold=0,prefetch_bucket_size=0,"    \
    "max_reuse_distance=0"

START_TEST(volumes)
{
    truth_begin();
    for (unsigned m = 1; m <= 4; m *= 2) {
        check_volume(1, m, "", 2);
        check_volume(2, m, "", m + 1);
        /* an all-reduce sends twice as much as a reduce-scatter */
        check_volume(1, m, ",impl=deepspeed", 3);
        check_volume(2, m, ",impl=deepspeed", 2 * m + 1);
        check_volume(2, m, ",impl=deepspeed,reduce_scatter=0", 2 * m + 1);
        check_volume(1, m, EACH, 2);
        check_volume(2, m, EACH, m + 1);
        check_volume(3, m, NOTHING_KEPT, 3 * m);
    }
    /* half the bytes are gathered, and 0.05 % more for scales */
    check_volume(3, 1, NOTHING_KEPT ",zero_quantized_weights=1", 2);
    truth_end();
}
END_TEST

/* ---- BF16_Optimizer (policies/sources.md 4) ------------------------------ */

#define SUMMED "impl=deepspeed%s --set training.gradients=fp32"

/* During the whole step a rank holds the bf16 weights, the .grad of the step
 * before, their fp32 sum, and its part of the optimizer state. The peak is
 * at the end of backward, not counting what the loop holds: there is also
 * the cast of the largest gradient that is added, or of all that are
 * reduced. */
static void check_sum(unsigned ranks, const char *more)
{
    char json[400];
    uint32_t parameters;
    uint64_t largest = 0;
    snprintf(json, sizeof json, layers, 4096, 4097, 8192);
    const ms_result *result =
        truth_run_json(json, "mlp -p zero:1,dp=%u," SUMMED, ranks, more);
    const ms_graph *graph = result->graph;
    uint64_t all = graph->parameters;
    uint64_t part = part_elements(graph, &parameters);
    for (uint32_t s = 0; s < graph->n_persistent; s++)
        if (ms_graph_is_weight(graph, s) && graph->storage_bytes[s] > largest)
            largest = graph->storage_bytes[s];
    uint64_t cast = largest > all ? 2 * largest : 2 * all;
    /* the libraries' memory is counted as well */
    uint64_t states = 8 * all + 12 * part;
    uint64_t peak = truth_rank(result)->peak.allocated_bytes -
                    truth_rank(result)->category_peaks[MS_WORKSPACE];
    ck_assert_uint_ge(part * ranks, all);
    ck_assert_uint_lt(part * ranks, all + 2 * ranks);
    ck_assert_uint_eq(truth_rank(result)->parameters_bytes, 2 * all);
    ck_assert_uint_eq(truth_rank(result)->gradients_bytes, 6 * all);
    ck_assert_uint_eq(truth_rank(result)->optimizer_state_bytes, 12 * part);
    ck_assert_uint_ge(peak, states + cast);
    ck_assert_uint_lt(peak, states + cast + all / 100);
}

/* A step sends an all-reduce of bf16 casts and a gather of the weights,
 * whatever the number of micro-batches. */
static void check_sum_volume(unsigned micro_batches)
{
    const ms_result *result =
        truth_run("llama-2-7b --batch 4 -p microbatch:%u+zero:1,dp=8," SUMMED,
                  micro_batches, "");
    uint64_t model_bytes = 2 * result->graph->parameters;
    uint64_t sent = truth_rank(result)->comm_bytes * RANKS / (RANKS - 1);
    ck_assert_uint_eq((200 * sent + model_bytes / 2) / model_bytes, 600);
}

START_TEST(summed_up)
{
    static const unsigned ranks[] = {1, 8, 64};
    truth_begin();
    for (size_t r = 0; r < sizeof ranks / sizeof *ranks; r++) {
        check_sum(ranks[r], "");
        check_sum(ranks[r], "+microbatch:2 --batch 2");
    }
    for (unsigned m = 1; m <= 4; m *= 2)
        check_sum_volume(m);
    truth_end();
}
END_TEST

/* ---- ZeRO++: what crosses the nodes' borders ----------------------------- */

#define NODES 2u
#define NODE_RANKS 8u
#define ALL (NODES * NODE_RANKS)

/* The bytes of this kind that cross the border of a node, in hundredths of
 * the model's 16-bit bytes. The ranks of a node together carry (n - 1) / n
 * of what is gathered, and (nodes - 1) / nodes of what is exchanged. Wang et
 * al. 2023 counts both as all. */
static uint64_t crossing(const ms_result *result, uint8_t kind)
{
    const ms_plan *plan = result->plan;
    uint64_t bytes = 0, model_bytes = 2 * result->graph->parameters;
    for (uint32_t i = 0; i < plan->n_transfers; i++)
        if (plan->transfers[i].kind == kind)
            bytes += plan->transfers[i].network_bytes;
    bytes = bytes * NODE_RANKS / (ALL - 1) * ALL;
    if (kind == MS_TRANSFER_EXCHANGE)
        bytes = bytes * (ALL - 1) / ALL * NODES / (NODES - 1);
    return (100 * bytes + model_bytes / 2) / model_bytes;
}

START_TEST(zeropp)
{
    static const struct {
        const char *policy;
        uint64_t gathered, scattered, exchanged;
    } rows[] = {
        {"", 200, 100, 0},
        {",zero_quantized_weights=1", 100, 100, 0},
        {",zero_hpz_partition_size=8", 100, 100, 0},
        {",zero_quantized_gradients=1", 200, 0, 25},
        {",zero_quantized_weights=1,zero_hpz_partition_size=8,"
         "zero_quantized_gradients=1",
         50, 0, 25},
    };
    truth_begin();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const ms_result *result =
            truth_run("llama-2-7b --batch 16 -p zero:3,dp=%u%s%s", ALL,
                      NOTHING_KEPT, rows[i].policy);
        truth_compare("deepspeed", rows[i].policy, "gathered between nodes, %",
                      rows[i].gathered, crossing(result, MS_TRANSFER_GATHER));
        truth_compare("deepspeed", rows[i].policy, "scattered between nodes, %",
                      rows[i].scattered, crossing(result, MS_TRANSFER_SCATTER));
        truth_compare("deepspeed", rows[i].policy, "exchanged between nodes, %",
                      rows[i].exchanged,
                      crossing(result, MS_TRANSFER_EXCHANGE));
    }
    truth_end();
}
END_TEST

Suite *suite_deepspeed(void)
{
    Suite *suite = suite_create("deepspeed");
    TCase *tcase = tcase_create("deepspeed");
    tcase_add_test(tcase, estimators);
    tcase_add_test(tcase, peaks);
    tcase_add_test(tcase, summed_up);
    tcase_add_test(tcase, parts);
    tcase_add_test(tcase, volumes);
    tcase_add_test(tcase, zeropp);
    suite_add_tcase(suite, tcase);
    return suite;
}
