/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Megatron-LM as its CI and logs measured it (megatron.tsv), and what its
 * layers keep, by hand count (graphs/kernels/mcore/mcore.h). */
#include "sim/graph.h"
#include "sim/pools/steps/pooled.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- measured ------------------------------------------------------------ */

static const ms_result *run(const truth_table *table, uint32_t row)
{
    char path[TESTS_PATH], file[96];
    const char *quantity = truth_cell(table, row, "quantity");
    bool first = strcmp(quantity, "first") == 0;
    bool pool = strncmp(quantity, "pool_", 5) == 0;
    snprintf(file, sizeof file, "tests/truth/%s",
             truth_cell(table, row, "model"));
    tests_source(file, path);
    return truth_run("%s --kernels megatron %s%s%s", path,
                     truth_cell(table, row, "options"),
                     first ? " --set training.step=first" : "",
                     pool ? " --allocator torch" : "");
}

/* The level at the end of the step, without the step's inputs, which memsim
 * keeps there; a fused update allocates nothing else. */
static uint64_t end_of_step(const ms_rank_report *rank)
{
    return rank->phase_peaks_with_workspace[MS_PHASE_OPTIMIZER] -
           rank->category_peaks[MS_INPUTS];
}

/* The rank that writes: the last one, which has the loss. */
static const ms_rank_report *writer_of(const ms_result *result)
{
    return &result->report->ranks[result->report->n_ranks - 1];
}

static const ms_pooled_step *pool_step(const ms_pooled *pooled, uint32_t step)
{
    return &pooled->steps[(step + 1) * pooled->n_ranks - 1];
}

static uint64_t number(const ms_result *result, const char *quantity)
{
    const ms_rank_report *rank = writer_of(result);
    const ms_pooled *pooled = result->line->pooled;
    if (strcmp(quantity, "pool_end") == 0)
        return pool_step(pooled, pooled->setup.steps - 1)->allocated_bytes -
               rank->category_peaks[MS_INPUTS];
    if (strcmp(quantity, "pool_peak") == 0)
        return pooled->ranks[pooled->n_ranks - 1].allocated_peak_bytes;
    if (strcmp(quantity, "pool_first") == 0)
        return pool_step(pooled, 0)->allocated_peak_bytes;
    if (strcmp(quantity, "end") == 0)
        return end_of_step(rank);
    if (strcmp(quantity, "states") == 0)
        return rank->parameters_bytes + rank->gradients_bytes +
               rank->optimizer_state_bytes;
    return strcmp(quantity, "reserved") == 0 ? rank->peak.reserved_bytes
                                             : rank->peak.allocated_bytes;
}

/* Compares either to the byte, or in hundredths of a percent of the truth;
 * then a number within the row's tolerance counts as 10000. */
static void compare(const truth_table *table, uint32_t row)
{
    const char *name = truth_cell(table, row, "name");
    const char *quantity = truth_cell(table, row, "quantity");
    const char *within = truth_cell(table, row, "within");
    uint64_t truth = truth_number(table, row, "bytes");
    uint64_t memsim = number(run(table, row), quantity);
    char words[96];
    if (strcmp(within, "exact") == 0) {
        snprintf(words, sizeof words, "%s, bytes", quantity);
        truth_compare("megatron", name, words, truth, memsim);
        return;
    }
    uint64_t most = truth_number(table, row, "within");
    uint64_t share = (uint64_t)(10000 * (double)memsim / (double)truth + 0.5);
    bool close = share + most >= 10000 && share <= 10000 + most;
    snprintf(words, sizeof words, "%s, 1/100 %% of truth, 10000: within %s",
             quantity, within);
    truth_compare("megatron", name, words, 10000, close ? 10000 : share);
}

START_TEST(measured)
{
    truth_table table;
    truth_begin();
    truth_read_here("megatron.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++)
        compare(&table, row);
    truth_end();
}
END_TEST

/* ---- counted ------------------------------------------------------------- */

/* The sizes of the layers below: hidden, heads, sequence, batch. */
#define H UINT64_C(512)
#define A UINT64_C(8)
#define S UINT64_C(256)
#define B UINT64_C(2)
#define N (S * B * H)
#define STATISTICS (16 * S * B) /* the fp32 mean and deviation of two norms */
#define ROWS (4 * A * S * B)    /* the log-sum-exp in fp32 */
#define RNG_STATE 16u

static uint64_t saved(const char *options, int layers)
{
    char path[TESTS_PATH];
    tests_source("tests/truth/mcore_gpt.json", path);
    const ms_result *result =
        truth_run("%s --kernels megatron --batch %" PRIu64
                  " --sequence %" PRIu64 " --set model.layers=%d %s",
                  path, B, S, layers, options);
    return truth_rank(result)->saved_for_backward_bytes;
}

static void compare_layer(const char *name, const char *options, uint64_t bytes)
{
    truth_compare("megatron", name, "bytes of two more layers", 2 * bytes,
                  saved(options, 3) - saved(options, 1));
}

START_TEST(bytes_of_a_layer)
{
    truth_begin();
    compare_layer("unfused", "--set megatron.attention=unfused",
                  34 * N + 5 * A * S * S * B + STATISTICS);
    compare_layer("local", "--set megatron.spec=local",
                  34 * N + 5 * A * S * S * B + STATISTICS);
    compare_layer("fused", "--set megatron.attention=fused",
                  34 * N + ROWS + STATISTICS + RNG_STATE);
    compare_layer("flash", "--set megatron.attention=flash",
                  36 * N + ROWS + STATISTICS + RNG_STATE);
    compare_layer("no dropout",
                  "--set megatron.attention=fused --set model.dropout=0",
                  32 * N + ROWS + STATISTICS + RNG_STATE);
    /* gate and up, 4f each where f = 4h, their product, and one norm's
     * statistic */
    compare_layer("swiglu, rms norm, rotary",
                  "--set megatron.attention=fused --set model.dropout=0 "
                  "--set model.activation=swiglu --set "
                  "model.norm_type=rms_norm --set "
                  "model.positions_type=rotary",
                  40 * N + ROWS + STATISTICS / 2 + RNG_STATE);
    /* q and k are also copied before their norms, each with an fp32 number a
     * head */
    compare_layer("qk_norm",
                  "--set megatron.attention=fused --set model.dropout=0 "
                  "--set model.positions_type=rotary --set "
                  "model.qk_norm=head",
                  36 * N + 2 * ROWS + ROWS + STATISTICS + RNG_STATE);
    /* with two heads of keys and values q is whole, k and v a quarter each */
    compare_layer("kv_heads=2",
                  "--set megatron.attention=fused --set model.dropout=0 "
                  "--set model.kv_heads=2",
                  29 * N + ROWS + STATISTICS + RNG_STATE);
    truth_end();
}
END_TEST

/* Bytes per parameter of the states: 18; with fp16 weights, or gradients like
 * bf16 ones, 16, and 4 more during the step; on 8 ranks 6 + 12 / 8 and 4 + 16 /
 * 8.  Remainders, 2 for 4, need no fp32 gradients. */
static void compare_states(const char *name, const char *options,
                           uint64_t eighths)
{
    char path[TESTS_PATH];
    tests_source("tests/truth/mcore_gpt.json", path);
    const ms_result *result =
        truth_run("%s --kernels megatron --batch 1 %s", path, options);
    const ms_rank_report *rank = truth_rank(result);
    uint64_t states = rank->parameters_bytes + rank->gradients_bytes +
                      rank->optimizer_state_bytes +
                      rank->optimizer_scratch_bytes;
    truth_compare("megatron", name, "bytes of states and step per parameter",
                  eighths, states * 8 / result->graph->parameters);
}

START_TEST(bytes_of_states)
{
    truth_begin();
    compare_states("bf16", "", 18 * 8);
    compare_states("bf16, 8 ranks", "-p zero:1,dp=8,impl=megatron", 6 * 8 + 12);
    compare_states("fp16", "--precision fp16-mixed", 20 * 8);
    compare_states("fp16, 8 ranks", "--precision fp16-mixed -p zero:1,dp=8",
                   4 * 8 + 16);
    compare_states("bf16 gradients", "--set training.gradients=weights",
                   20 * 8);
    compare_states("bf16 gradients, 8 ranks",
                   "--set training.gradients=weights "
                   "-p zero:1,dp=8,impl=megatron",
                   4 * 8 + 16);
    compare_states("remainders", "--precision bf16-remainders", 16 * 8);
    compare_states("remainders, bf16 gradients, 8 ranks",
                   "--precision bf16-remainders "
                   "--set training.gradients=weights "
                   "-p zero:1,dp=8,impl=megatron",
                   4 * 8 + 10);
    compare_states("fp8, forward", "--precision fp8 --set fp8.weights=forward",
                   18 * 8);
    compare_states("fp32", "--precision fp32", 16 * 8);
    truth_end();
}
END_TEST

/* For 16-bit logits [n, v]: the bytes per logit that forward allocates (4,
 * or 8 compiled, or none), and those that the loss saves. */
static void compare_loss(const char *loss, uint64_t forward, uint64_t kept)
{
    char path[TESTS_PATH];
    const uint64_t logits = S * B * 50304;
    tests_source("tests/truth/mcore_gpt.json", path);
    const ms_result *result = truth_run(
        "%s --kernels megatron --batch %" PRIu64 " --sequence %" PRIu64
        " --set megatron.loss=%s --set model.layers=1",
        path, B, S, loss);
    const ms_rank_report *rank = truth_rank(result);
    uint64_t start = rank->levels[MS_MARK_BEFORE_LOSS];
    uint64_t peak = rank->phase_peaks[MS_PHASE_LOSS];
    truth_compare("megatron", loss, "loss, bytes per logit in forward", forward,
                  (peak - start) / logits);
    truth_compare("megatron", loss, "loss, bytes per logit saved", kept,
                  (rank->levels[MS_MARK_AFTER_FORWARD] + 2 * logits - start) /
                      logits);
}

START_TEST(bytes_of_the_loss)
{
    truth_begin();
    compare_loss("unfused", 4, 4);
    compare_loss("native", 8, 4);
    compare_loss("te", 0, 2);
    truth_end();
}
END_TEST

/* ---- blocks -------------------------------------------------------------- */

/* Checks what a pool is asked for by one category of states, and in how many
 * blocks; returns the bytes of the states. */
static uint64_t add_up(const ms_graph *graph, uint8_t category, uint64_t *asked,
                       uint32_t *n)
{
    uint64_t bytes = 0;
    *asked = *n = 0;
    for (uint32_t s = 0; s < graph->n_persistent; s++) {
        uint64_t own = graph->storage_bytes[s];
        uint64_t it = graph->storage_asked_bytes[s];
        if (graph->storage_category[s] != category ||
            graph->storage_buffer[s] != 0)
            continue;
        it = it == MS_UNSHARED ? own : it;
        bytes += own;
        *asked += it;
        *n += it > 0;
    }
    return bytes;
}

/* On dp ranks the sum of the bytes is the same: the weights are one block,
 * the gradients another, and the rank's part begins with the first
 * parameters. */
static void check_blocks(const char *model, int dp, const char *more)
{
    const ms_result *result =
        truth_run("%s --kernels megatron --batch 2 --allocator torch "
                  "-p zero:1,dp=%d,impl=megatron%s",
                  model, dp, more);
    const ms_graph *graph = result->graph;
    uint64_t asked, bytes;
    uint32_t n;
    bytes = add_up(graph, MS_PARAMETERS, &asked, &n);
    ck_assert_msg(asked == bytes && n == 1, "%s, dp=%d: weights", model, dp);
    bytes = add_up(graph, MS_GRADIENTS, &asked, &n);
    ck_assert_msg(asked == bytes && n == 1, "%s, dp=%d: gradients", model, dp);
    bytes = add_up(graph, MS_OPTIMIZER_STATE, &asked, &n);
    ck_assert_msg(asked == bytes, "%s, dp=%d: %" PRIu64 " of %" PRIu64, model,
                  dp, asked, bytes);
    ck_assert_msg(truth_rank(result)->peak.requested_bytes ==
                      truth_rank(result)->peak.allocated_bytes,
                  "%s, dp=%d: asked for at the peak", model, dp);
}

START_TEST(blocks_of_states)
{
    static const int ranks[] = {1, 2, 3, 4, 5, 8, 12, 64, 252};
    char path[TESTS_PATH];
    tests_source("tests/truth/mcore_gpt.json", path);
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        check_blocks(path, ranks[i], "");
        check_blocks(path, ranks[i], "+microbatch:2");
        check_blocks("qwen3-0.6b", ranks[i], "+checkpoint:full");
        check_blocks("bert-base", ranks[i], "");
    }
}
END_TEST

Suite *suite_megatron(void)
{
    Suite *suite = suite_create("megatron");
    TCase *tcase = tcase_create("megatron");
    tcase_set_timeout(tcase, 240);
    tcase_add_test(tcase, measured);
    tcase_add_test(tcase, bytes_of_a_layer);
    tcase_add_test(tcase, bytes_of_states);
    tcase_add_test(tcase, bytes_of_the_loss);
    tcase_add_test(tcase, blocks_of_states);
    suite_add_tcase(suite, tcase);
    return suite;
}
