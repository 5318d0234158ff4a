/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Laws of models in Hugging Face's code, whatever their sizes. */
#include "sim/graph.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <stdio.h>

#define TOKENS 64u
#define WIDTH 64u
#define INNER 96u
#define LAYERS 2u
#define EXPERTS 8u
#define CHOSEN 2u

#define SIZES                                                                  \
    "\"vocab_size\": 100, \"hidden_size\": 64, \"num_hidden_layers\": 2, "     \
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 4, "                 \
    "\"num_experts_per_tok\": 2, \"max_position_embeddings\": 64, "
#define MIXTRAL                                                                \
    "{\"model_type\": \"mixtral\", " SIZES                                     \
    "\"intermediate_size\": 96, \"num_local_experts\": 8, "                    \
    "\"sliding_window\": null}"
#define DEEPSEEK                                                               \
    "{\"model_type\": \"deepseek_v3\", " SIZES                                 \
    "\"intermediate_size\": 96, \"moe_intermediate_size\": 96, "               \
    "\"n_routed_experts\": 8, \"q_lora_rank\": 16, \"kv_lora_rank\": 16, "     \
    "\"qk_nope_head_dim\": 16, \"qk_rope_head_dim\": 8, \"v_head_dim\": 16, "  \
    "\"first_k_dense_replace\": 0}"

/* The bytes that a layer of experts, with what is around it, saves. */
static uint64_t saved(double imbalance, const char *kernels)
{
    char json[1024], layer[256];
    snprintf(layer, sizeof layer,
             "{\"type\": \"moe\", \"experts\": 8, \"top_k\": 2, \"hidden\": "
             "96, \"imbalance\": %g, \"code\": \"llama\"}",
             imbalance);
    snprintf(
        json, sizeof json,
        "{\"memsim\": 1, \"name\": \"moe\", \"input\": {\"tokens\": true, "
        "\"longest\": 64}, \"layers\": [{\"type\": \"embedding\", "
        "\"vocab\": 100, \"dim\": 64}, %s, {\"type\": \"linear\", \"out\": "
        "100}, {\"type\": \"cross_entropy\"}]}",
        layer);
    const ms_result *result = truth_run_json(
        json, "moe --kernels %s --precision bf16 --sequence 64", kernels);
    return truth_rank(result)->saved_for_backward_bytes;
}

/* One row more on the busiest rank adds one permuted input, gate and up
 * projection, gated value and output (graphs/autograd.md 21), each in bf16. */
START_TEST(imbalance_adds_rows)
{
    uint64_t rows = TOKENS * CHOSEN;
    uint64_t row = 2 * (WIDTH + 2 * INNER + INNER + WIDTH);
    truth_begin();
    uint64_t even = saved(1, "flash");
    ck_assert_uint_eq(saved(1.5, "flash") - even, rows / 2 * row);
    ck_assert_uint_eq(saved(3, "flash") - even, 2 * rows * row);
    ck_assert_uint_gt(saved(1.5, "eager"), saved(1, "eager"));
    truth_end();
}
END_TEST

START_TEST(settings_reach_all_layers)
{
    const char *const sets[] = {"imbalance=2", "experts_run=loop"};
    truth_begin();
    const ms_result *result =
        truth_run_json(MIXTRAL, "config.json --sequence 64");
    uint64_t even = truth_rank(result)->saved_for_backward_bytes;
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        result = truth_run_json(
            MIXTRAL, "config.json --sequence 64 --set model.%s", sets[i]);
        ck_assert_uint_gt(truth_rank(result)->saved_for_backward_bytes, even);
    }
    truth_end();
}
END_TEST

/* The bias that balances experts is counted as a parameter but has neither
 * gradient nor optimizer state: it takes 2 + 12 bytes less than others. */
START_TEST(balancing_bias_is_no_parameter_to_train)
{
    truth_begin();
    const ms_result *result =
        truth_run_json(DEEPSEEK, "config.json --sequence 64 "
                                 "--set training.optimizer_impl=foreach");
    uint64_t trained = result->graph->parameters - LAYERS * EXPERTS;
    const ms_rank_report *rank = truth_rank(result);
    ck_assert_uint_eq(rank->gradients_bytes, 2 * trained);
    ck_assert_uint_eq(rank->optimizer_state_bytes, 12 * trained);
    truth_end();
}
END_TEST

static uint64_t parameters(const char *set)
{
    const ms_result *result = truth_run_json(
        DEEPSEEK, "config.json --sequence 64 --set model.%s", set);
    return result->graph->parameters;
}

/* The module that predicts the token after the next: a block, the product of
 * two normalised inputs, and three norms. Embedding and head are the model's
 * own. */
START_TEST(prediction_of_two_tokens)
{
    truth_begin();
    uint64_t block =
        parameters("num_hidden_layers=3") - parameters("num_hidden_layers=2");
    ck_assert_uint_eq(parameters("mtp=1") - parameters("mtp=0"),
                      block + 2 * WIDTH * WIDTH + 3 * WIDTH);
    ck_assert_uint_eq(parameters("mtp=3") - parameters("mtp=0"),
                      3 * (parameters("mtp=1") - parameters("mtp=0")));
    const ms_result *result =
        truth_run_json(DEEPSEEK, "config.json --sequence 64 --set model.mtp=1 "
                                 "--precision bf16 --set hold_output=none");
    const ms_rank_report *rank = truth_rank(result);
    uint64_t before = rank->levels[MS_MARK_START];
    uint64_t gradients = 2 * (result->graph->parameters - 3 * EXPERTS);
    /* only gradients and the loss stay */
    ck_assert_uint_le(rank->levels[MS_MARK_AFTER_BACKWARD] - before,
                      gradients + 16);
    truth_end();
}
END_TEST

Suite *suite_codes(void)
{
    Suite *suite = suite_create("codes");
    TCase *tcase = tcase_create("codes");
    tcase_add_test(tcase, imbalance_adds_rows);
    tcase_add_test(tcase, settings_reach_all_layers);
    tcase_add_test(tcase, balancing_bias_is_no_parameter_to_train);
    tcase_add_test(tcase, prediction_of_two_tokens);
    suite_add_tcase(suite, tcase);
    return suite;
}
