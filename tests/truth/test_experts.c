/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Mixtures of experts and losses by chunks: what is kept, counted by hand from
 * the save lists of Megatron's grouped experts and Liger's losses
 * (graphs/autograd.md 20 and 21), in 16 bits. */
#include "graphs/layers/experts/deepdispatch.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"

#include <stdio.h>

enum { WIDTH = 64, EXPERTS = 8, CHOSEN = 2, HIDDEN = 128 };
enum { BATCH = 4, SEQUENCE = 32, TOKENS = BATCH * SEQUENCE, VOCAB = 1000 };

static const char model[] =
    "{\"memsim\": 1, \"name\": \"y\", \"input\": {\"shape\": [32, 64]},"
    " \"layers\": ["
    "{\"type\": \"op\", \"name\": \"x\", \"shape\": [32, 64]}, {%s}%s]}";

static const ms_rank_report *run(const char *layer, const char *end)
{
    char json[512];
    snprintf(json, sizeof json, model, layer, end);
    return truth_rank(truth_run_json(json, "y --batch 4"));
}

/* Per token: the router's input, its fp32 softmax, the chosen experts' fp32
 * probabilities, their sum and its 16-bit quotient, their 8-byte indices and
 * where their rows went. */
static uint64_t routing(void)
{
    return TOKENS * (2 * WIDTH + 4 * EXPERTS + CHOSEN * (4 + 2 + 8 + 4) + 4);
}

/* Per row: the permuted input, both halves of the gate, the gated value and,
 * where they are weighted, the experts' output. */
static uint64_t row(bool weights_output)
{
    return 2 * WIDTH + 4 * HIDDEN + 2 * HIDDEN +
           (weights_output ? 2 * WIDTH : 0);
}

static void compare_experts(const char *name, const char *settings,
                            uint64_t rows, bool weights_output)
{
    char layer[256];
    snprintf(layer, sizeof layer,
             "\"type\": \"moe\", \"experts\": 8, \"hidden\": 128%s", settings);
    truth_compare(
        "experts", name, "saved_bytes", routing() + rows * row(weights_output),
        run(layer, ", {\"type\": \"mean\"}")->saved_for_backward_bytes);
}

/* What losses of the router add: fp32 scores of all experts and how many tokens
 * each has; logits and their sums in fp32; and each loss itself. */
static void compare_losses(void)
{
    static const char *const settings[] = {", \"aux_loss\": 0.01",
                                           ", \"z_loss\": 0.001"};
    const uint64_t more[] = {TOKENS * 4 * EXPERTS + 4 * EXPERTS + 4,
                             TOKENS * 4 * (EXPERTS + 1) + 4};
    for (int i = 0; i < 2; i++) {
        char layer[256];
        snprintf(layer, sizeof layer,
                 "\"type\": \"moe\", \"experts\": 8, \"hidden\": 128%s",
                 settings[i]);
        truth_compare(
            "experts", settings[i], "saved_bytes",
            routing() + TOKENS * CHOSEN * row(true) + more[i],
            run(layer, ", {\"type\": \"mean\"}")->saved_for_backward_bytes);
    }
}

START_TEST(experts_keep)
{
    uint64_t routed = TOKENS * CHOSEN;
    truth_begin();
    compare_experts("dropless", "", routed, true);
    compare_experts("dropless, weighted gate", ", \"weighted\": \"gate\"",
                    routed, false);
    compare_experts("imbalance 1.5", ", \"imbalance\": 1.5", routed * 3 / 2,
                    true);
    compare_experts("capacity 1.25", ", \"capacity\": 1.25", routed * 5 / 4,
                    true);
    compare_experts("one by one", ", \"run\": \"each\"", routed, true);
    compare_experts("one by one, imbalance 1.5",
                    ", \"run\": \"each\", \"imbalance\": 1.5", routed * 3 / 2,
                    true);
    compare_losses();
    truth_end();
}
END_TEST

/* The gradients of the input and the weight wait from forward to backward;
 * logits exist for a chunk only: two of them, as the old one dies when the
 * name is bound to the new one. */
START_TEST(head_and_loss_in_chunks)
{
    uint64_t grads = 2 * TOKENS * WIDTH + 2 * VOCAB * WIDTH;
    uint64_t chunk = 8; /* 128 / ceil(1000 / 64) rows, a power of 2 */
    truth_begin();
    const ms_rank_report *rank =
        run("\"type\": \"linear\", \"out\": 1000, \"bias\": false",
            ", {\"type\": \"cross_entropy\", \"kernel\": \"liger_linear\"}");
    uint64_t before = rank->levels[MS_MARK_BEFORE_LOSS];
    truth_compare("experts", "liger_linear", "kept after the loss",
                  grads + 2 - 2 * TOKENS * WIDTH,
                  rank->levels[MS_MARK_AFTER_FORWARD] - before);
    truth_compare("experts", "liger_linear", "peak of the loss",
                  grads + 2 + 2 * chunk * VOCAB * 2,
                  rank->phase_peaks[MS_PHASE_LOSS] - before);
    truth_end();
}
END_TEST

/* The logits become their gradient: nothing of their size is added. */
START_TEST(logits_become_their_gradient)
{
    truth_begin();
    const ms_rank_report *rank =
        run("\"type\": \"linear\", \"out\": 1000, \"bias\": false",
            ", {\"type\": \"cross_entropy\", \"kernel\": \"liger\"}");
    uint64_t before = rank->levels[MS_MARK_BEFORE_LOSS];
    truth_compare("experts", "liger", "kept after the loss", 2,
                  rank->levels[MS_MARK_AFTER_FORWARD] - before);
    truth_compare("experts", "liger", "peak of the loss", 4 * TOKENS + 2,
                  rank->phase_peaks[MS_PHASE_LOSS] - before);
    truth_compare("experts", "liger", "saved_bytes",
                  2 * TOKENS * (WIDTH + VOCAB), rank->saved_for_backward_bytes);
    truth_end();
}
END_TEST

/* torchtune's: the logits are there in 8 pieces, each is cast to fp32 in turn;
 * their log-probabilities stay when they have gone, with a copy of the labels
 * and an fp32 weight of each piece. */
START_TEST(logits_come_in_pieces)
{
    uint64_t logits = 2 * TOKENS * VOCAB, kept = 4 * TOKENS * VOCAB;
    uint64_t labels = 8 * TOKENS, weights = 8 * 4;
    truth_begin();
    const ms_rank_report *rank =
        run("\"type\": \"linear\", \"out\": 1000, \"bias\": false",
            ", {\"type\": \"cross_entropy\","
            "   \"kernel\": \"ce_with_chunked_output\"}");
    truth_compare("experts", "ce_with_chunked_output", "saved_bytes",
                  kept + labels + weights + 2 * TOKENS * WIDTH,
                  rank->saved_for_backward_bytes);
    uint64_t before = rank->levels[MS_MARK_BEFORE_LOSS];
    truth_compare("experts", "ce_with_chunked_output", "kept after the loss",
                  kept + labels + weights + 4 - logits,
                  rank->levels[MS_MARK_AFTER_FORWARD] - before);
    truth_compare("experts", "ce_with_chunked_output", "peak of the loss",
                  labels + weights + kept + kept / 8 + 2 * 4,
                  rank->phase_peaks[MS_PHASE_LOSS] - before);
    truth_end();
}
END_TEST

/* Megatron's: the fp32 softmax, a mask and an index per row. */
START_TEST(softmax_becomes_the_gradient)
{
    truth_begin();
    const ms_rank_report *rank =
        run("\"type\": \"linear\", \"out\": 1000, \"bias\": false",
            ", {\"type\": \"cross_entropy\", \"kernel\": \"megatron\"}");
    truth_compare("experts", "megatron", "saved_bytes",
                  TOKENS * (2 * WIDTH + 4 * VOCAB + 1 + 8),
                  rank->saved_for_backward_bytes);
    truth_end();
}
END_TEST

/* Buffers of DeepEP v1.2.1 for a width of 7168, without the workspace: what
 * its size hints give, in MiB. */
START_TEST(buffers_of_deepep)
{
    static const struct {
        uint32_t ranks;
        uint64_t mib;
    } rows[] = {{8, 320}, {16, 360 + 88}, {32, 360 + 160}, {64, 360 + 351}};
    truth_begin();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[16];
        uint64_t bytes = ms_deepdispatch_bytes(rows[i].ranks, 7168);
        snprintf(name, sizeof name, "%u ranks", rows[i].ranks);
        truth_compare("experts", name, "MiB", 32 + rows[i].mib,
                      (bytes + (UINT64_C(1) << 19)) >> 20);
    }
    truth_end();
}
END_TEST

Suite *suite_experts(void)
{
    Suite *suite = suite_create("experts");
    TCase *tcase = tcase_create("experts");
    tcase_add_test(tcase, buffers_of_deepep);
    tcase_add_test(tcase, experts_keep);
    tcase_add_test(tcase, head_and_loss_in_chunks);
    tcase_add_test(tcase, logits_become_their_gradient);
    tcase_add_test(tcase, logits_come_in_pieces);
    tcase_add_test(tcase, softmax_becomes_the_gradient);
    suite_add_tcase(suite, tcase);
    return suite;
}
