/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Layers of multi-token prediction and stages without layers, in layouts of no
 * rule: each rank has the weights of its letters, an m the embedding besides;
 * a stage without a letter has none and holds what it hands on. */
#include "sim/graph.h"
#include "sim/report.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <stdio.h>
#include <string.h>

#define TRIALS 24u
#define MOST_STAGES 6u
#define WIDTH 64u
#define VOCAB 100u
#define TOKENS 64u
#define MICRO_BATCHES 6u

#define DEEPSEEK                                                               \
    "{\"model_type\": \"deepseek_v3\", \"vocab_size\": 100, "                  \
    "\"hidden_size\": 64, \"num_hidden_layers\": 5, "                          \
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 4, "                 \
    "\"num_experts_per_tok\": 2, \"max_position_embeddings\": 64, "            \
    "\"intermediate_size\": 96, \"moe_intermediate_size\": 96, "               \
    "\"n_routed_experts\": 8, \"q_lora_rank\": 16, \"kv_lora_rank\": 16, "     \
    "\"qk_nope_head_dim\": 16, \"qk_rope_head_dim\": 8, \"v_head_dim\": 16, "  \
    "\"first_k_dense_replace\": 0}"
#define LAYERS 5u

typedef struct layout {
    char letters[64];
    uint32_t n, t[MOST_STAGES], m[MOST_STAGES], predicts;
} layout;

/* n stages: t in any of them, all m in one behind the last t. */
static void draw(laws_random *random, uint32_t m, layout *of)
{
    size_t length = 0;
    uint32_t last = 0;
    *of = (layout){.n = 2 + laws_below(random, MOST_STAGES - 1)};
    for (uint32_t i = 0; i < LAYERS; i++) {
        uint32_t k = laws_below(random, of->n);
        of->t[k]++;
        last = k > last ? k : last;
    }
    of->predicts = last + laws_below(random, of->n - last);
    of->m[of->predicts] = m;
    for (uint32_t k = 0; k < of->n; k++) {
        of->letters[length++] = k == 0 ? 'E' : '|';
        for (uint32_t i = 0; i < of->t[k]; i++)
            of->letters[length++] = 't';
        for (uint32_t i = 0; i < of->m[k]; i++)
            of->letters[length++] = 'm';
    }
    of->letters[length++] = 'L';
}

static const ms_result *run(uint32_t m, const char *policy)
{
    return truth_run_json(DEEPSEEK,
                          "config.json --sequence %u --batch %u --precision "
                          "bf16 --set model.mtp=%u -p %s",
                          TOKENS, MICRO_BATCHES, m, policy);
}

static uint64_t parameters(uint32_t layers, uint32_t m)
{
    return truth_run_json(DEEPSEEK,
                          "config.json --sequence %u --set "
                          "model.num_hidden_layers=%u --set model.mtp=%u",
                          TOKENS, layers, m)
        ->graph->parameters;
}

/* What the letters of stage k have. */
static uint64_t expect(const layout *of, uint32_t k, uint64_t block, uint64_t m)
{
    uint64_t table = VOCAB * WIDTH, final = WIDTH;
    uint32_t last = of->n;
    while (of->t[--last] == 0)
        continue;
    bool norms = of->m[of->predicts] > 0 ? k == last : k + 1 == of->n;
    return of->t[k] * block + of->m[k] * m +
           (k == 0 || of->m[k] > 0 ? table : 0) + (norms ? final : 0) +
           (k + 1 == of->n ? table : 0);
}

START_TEST(stages_have_their_letters)
{
    truth_begin();
    uint64_t block = parameters(2, 0) - parameters(1, 0);
    uint64_t predicting = parameters(2, 1) - parameters(2, 0);
    for (uint32_t trial = 0; trial < TRIALS; trial++) {
        laws_random random = {laws_seed = 77000 + trial};
        uint32_t m = laws_below(&random, 3);
        char policy[128];
        layout of;
        draw(&random, m, &of);
        snprintf(policy, sizeof policy, "microbatch:%u+pipeline:%u,layers=%s%s",
                 MICRO_BATCHES, of.n, of.letters,
                 laws_chance(&random, 50) ? ",schedule=zb-h1" : "");
        const ms_report *report = run(m, policy)->report;
        ck_assert_uint_eq(report->n_ranks, of.n);
        for (uint32_t k = 0; k < of.n; k++)
            ck_assert_msg(report->ranks[k].parameters_bytes ==
                              2 * expect(&of, k, block, predicting),
                          "seed %llu, %s: rank %u has %llu bytes, not %llu",
                          (unsigned long long)laws_seed, policy, k,
                          (unsigned long long)report->ranks[k].parameters_bytes,
                          (unsigned long long)2 *
                              expect(&of, k, block, predicting));
    }
    truth_end();
}
END_TEST

/* With 1f1b a stage of p has p - k micro-batches under way, one with layers or
 * without; a stage without holds the input of each, what it sends of the one at
 * hand and what has come for the next. */
START_TEST(empty_stages_hand_on)
{
    const uint64_t message = 2 * TOKENS * WIDTH;
    truth_begin();
    const ms_report *report =
        run(0, "microbatch:6+pipeline:5,layers=Et||tt||ttL")->report;
    for (uint32_t k = 0; k < 5; k++)
        ck_assert_uint_eq(report->ranks[k].in_flight_micro_batches, 5 - k);
    for (uint32_t k = 1; k < 5; k += 2) {
        const ms_rank_report *rank = &report->ranks[k];
        uint64_t held =
            rank->peak.allocated_bytes - rank->peak.by_category[MS_WORKSPACE];
        ck_assert_uint_ge(held, (5 - k) * message);
        ck_assert_uint_le(held, (5 - k + 3) * message);
    }
    truth_end();
}
END_TEST

/* An empty stage neither adds to the work of others nor takes from it. */
START_TEST(empty_stages_add_no_work)
{
    ms_rank_report with[4], without[3];
    truth_begin();
    const ms_report *report =
        run(1, "microbatch:6+pipeline:4,layers=Ett||tt|tmL")->report;
    memcpy(with, report->ranks, sizeof with);
    report = run(1, "microbatch:6+pipeline:3,layers=Ett|tt|tmL")->report;
    memcpy(without, report->ranks, sizeof without);
    for (uint32_t k = 0; k < 3; k++)
        ck_assert_uint_eq(with[k > 0 ? k + 1 : k].parameters_bytes,
                          without[k].parameters_bytes);
    ck_assert_uint_eq(with[3].peak.allocated_bytes,
                      without[2].peak.allocated_bytes);
    ck_assert_uint_gt(with[0].peak.allocated_bytes,
                      without[0].peak.allocated_bytes);
    truth_end();
}
END_TEST

/* The model without such layers is the one that never heard of them. */
START_TEST(none_is_as_before)
{
    truth_begin();
    const ms_rank_report said = *truth_rank(run(0, "microbatch:6"));
    const ms_rank_report plain = *truth_rank(
        truth_run_json(DEEPSEEK, "config.json --sequence 64 --batch 6 "
                                 "--precision bf16 -p microbatch:6"));
    ck_assert_uint_eq(said.peak.allocated_bytes, plain.peak.allocated_bytes);
    ck_assert_uint_eq(said.time.step_ns, plain.time.step_ns);
    truth_end();
}
END_TEST

Suite *suite_predictions(void)
{
    Suite *suite = suite_create("predictions");
    TCase *tcase = tcase_create("predictions");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, stages_have_their_letters);
    tcase_add_test(tcase, empty_stages_hand_on);
    tcase_add_test(tcase, empty_stages_add_no_work);
    tcase_add_test(tcase, none_is_as_before);
    suite_add_tcase(suite, tcase);
    return suite;
}
