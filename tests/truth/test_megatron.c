/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Megatron-LM as its CI and logs measured it (megatron.tsv), and what its
 * layers keep, by hand count (graphs/mcore.h). */
#include "tests/tests.h"
#include "tests/truth/truth.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- measured ------------------------------------------------------------ */

static const ms_rank_report *run(const truth_table *table, uint32_t row)
{
    char path[TESTS_PATH], file[96];
    bool first = strcmp(truth_cell(table, row, "quantity"), "first") == 0;

    snprintf(file, sizeof file, "tests/truth/%s",
             truth_cell(table, row, "model"));
    tests_source(file, path);
    return truth_rank(truth_run("%s --kernels megatron %s%s", path,
                                truth_cell(table, row, "options"),
                                first ? " --set training.step=first" : ""));
}

/* The step's inputs have ended then, which memsim keeps: a fused update makes
 * nothing else. */
static uint64_t end_of_step(const ms_rank_report *rank)
{
    return rank->phase_peaks_with_workspace[MS_PHASE_OPTIMIZER] -
           rank->category_peaks[MS_INPUTS];
}

static uint64_t number(const ms_rank_report *rank, const char *quantity)
{
    if (strcmp(quantity, "end") == 0)
        return end_of_step(rank);
    if (strcmp(quantity, "states") == 0)
        return rank->parameters_bytes + rank->gradients_bytes +
               rank->optimizer_state_bytes;
    return strcmp(quantity, "reserved") == 0 ? rank->peak.reserved_bytes
                                             : rank->peak.allocated_bytes;
}

/* Either byte by byte, or in hundredths of a percent of the truth, where 10000
 * stands for all that is within so many. */
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

/* Hidden, heads, sequence, batch of the layers below. */
#define H UINT64_C(512)
#define A UINT64_C(8)
#define S UINT64_C(256)
#define B UINT64_C(2)
#define N (S * B * H)
#define STATISTICS (16 * S * B) /* two norms' fp32 mean and deviation */
#define ROWS (4 * A * S * B)    /* fp32 log-sum-exp */
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
    /* gate and up, 4f each of f = 4h, their product, one norm's statistic */
    compare_layer("swiglu, rms norm, rotary",
                  "--set megatron.attention=fused --set model.dropout=0 "
                  "--set model.activation=swiglu --set "
                  "model.norm_type=rms_norm --set "
                  "model.positions_type=rotary",
                  40 * N + ROWS + STATISTICS / 2 + RNG_STATE);
    /* and copies of q and k before their norms, of which one fp32 a head */
    compare_layer("qk_norm",
                  "--set megatron.attention=fused --set model.dropout=0 "
                  "--set model.positions_type=rotary --set "
                  "model.qk_norm=head",
                  36 * N + 2 * ROWS + ROWS + STATISTICS + RNG_STATE);
    /* two heads of keys and values: q whole, k and v a quarter */
    compare_layer("kv_heads=2",
                  "--set megatron.attention=fused --set model.dropout=0 "
                  "--set model.kv_heads=2",
                  29 * N + ROWS + STATISTICS + RNG_STATE);
    truth_end();
}
END_TEST

/* Bytes per parameter of the states: 18, with fp16 weights 16 and 4 while the
 * step runs, on 8 ranks 6 + 12 / 8 and 4 + 16 / 8. */
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
                  eighths, states * 8 / result->graph.parameters);
}

START_TEST(bytes_of_states)
{
    truth_begin();
    compare_states("bf16", "", 18 * 8);
    compare_states("bf16, 8 ranks", "-p zero:1,dp=8,impl=megatron", 6 * 8 + 12);
    compare_states("fp16", "--precision fp16-mixed", 20 * 8);
    compare_states("fp16, 8 ranks", "--precision fp16-mixed -p zero:1,dp=8",
                   4 * 8 + 16);
    compare_states("fp32", "--precision fp32", 16 * 8);
    truth_end();
}
END_TEST

/* Of 16-bit logits [n, v]: forward 4 more, or 8 compiled, or nothing; what the
 * loss saves. */
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

Suite *suite_megatron(void)
{
    Suite *suite = suite_create("megatron");
    TCase *tcase = tcase_create("megatron");
    tcase_add_test(tcase, measured);
    tcase_add_test(tcase, bytes_of_a_layer);
    tcase_add_test(tcase, bytes_of_states);
    tcase_add_test(tcase, bytes_of_the_loss);
    suite_add_tcase(suite, tcase);
    return suite;
}
