/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every page of a model_type, and what a config.json may contain or omit. */
#include "graphs/device.h"
#include "graphs/kernels/kernels.h"
#include "graphs/layertypes.h"
#include "graphs/modelgraph.h"
#include "graphs/models/huggingface/huggingface.h"
#include "graphs/models/pages/pagefile.h"
#include "sim/graph.h"
#include "sim/shape.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"

#include <stdio.h>
#include <string.h>

static ms_arena arena;
static ms_fault fault;

static void set_up(void)
{
    arena = (ms_arena){0};
    fault = (ms_fault){0};
}

static void tear_down(void)
{
    ms_arena_free(&arena);
}

typedef struct lowered {
    ms_model model;
    ms_training training;
    ms_graph graph;
} lowered;

static ms_err lower(const char *json, const ms_override *set, uint32_t n,
                    ms_kernels kernels, lowered *it)
{
    const ms_shape shape = {.batch = 1, .micro_batches = 1, .data_ranks = 1};
    MS_TRY(ms_read_model_bytes("config.json", json, strlen(json), set, n,
                               &arena, &it->model, &fault));
    ms_training_init(&it->training);
    it->training.kernels = kernels;
    it->training.sequence = it->model.tokens ? 16 : 0;
    MS_TRY(ms_resolve_training(&it->training, &it->model, &fault));
    MS_TRY(ms_dag_order(&it->model, &arena, &fault));
    return ms_lower(&it->model, &it->training, ms_devicerows_at(0), &shape,
                    &arena, &it->graph, &fault);
}

static uint64_t count(const char *json)
{
    lowered it;
    ms_err err = lower(json, NULL, 0, MS_FLASH, &it);
    ck_assert_msg(err == MS_OK, "%s: %s", json, fault.what);
    return it.graph.parameters;
}

/* ---- all pages ----------------------------------------------------------- */

static const char *const heads[] = {
    "none",    "lm",     "mlm",         "pooler", "classes:3", "tokens:3",
    "answers", "choice", "pretraining", "next",   "encoder"};
static const char *const depths[] = {"num_hidden_layers", "n_layer",
                                     "num_layers"};

/* The class defaults with two layers; experts where there are some. */
static void small(const char *type, char *json, size_t size)
{
    const ms_override *none = NULL;
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
        ms_model model;
        fault = (ms_fault){0};
        snprintf(json, size,
                 "{\"model_type\": \"%s\", \"%s\": 2, "
                 "\"num_experts_per_tok\": 2}",
                 type, depths[i]);
        ms_err err = ms_read_model_bytes("config.json", json, strlen(json),
                                         none, 0, &arena, &model, &fault);
        ck_assert_msg(err == MS_OK, "%s: %s", type, fault.what);
        if (model.n_blocks == 2 || model.n_blocks == 4) /* T5: two stacks */
            return;
    }
    ck_abort_msg("%s: no key sets its depth", type);
}

START_TEST(every_page_lowers)
{
    static const ms_kernels kernels[] = {MS_FLASH, MS_EAGER, MS_EFFICIENT,
                                         MS_KORTHIKANTI};
    const char *type = ms_pages_all[_i].name;
    char json[256];
    uint32_t n = 0;
    small(type, json, sizeof json);
    for (size_t h = 0; h < sizeof heads / sizeof *heads; h++) {
        const ms_override set = {"head", heads[h]};
        for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
            lowered it;
            ms_err err = lower(json, &set, 1, kernels[k], &it);
            if (err == MS_EUSAGE)
                continue; /* it has no such head */
            ck_assert_msg(err == MS_OK, "%s, head %s: %s", type, heads[h],
                          fault.what);
            n++;
        }
        ms_arena_reset(&arena);
    }
    ck_assert_uint_ge(n, 8); /* none and one more */
}
END_TEST

/* Parameters of a head on what it stands on; 0: there is no such head. */
static uint64_t head_adds(const char *json, const char *head, const char *base)
{
    const ms_override set[2] = {{"head", head}, {"head", base}};
    lowered it[2];
    for (int i = 0; i < 2; i++) {
        ms_err err = lower(json, &set[i], 1, MS_EAGER, &it[i]);
        if (i == 0 && err == MS_EUSAGE)
            return 0;
        ck_assert_msg(err == MS_OK, "%s: %s", set[i].value, fault.what);
    }
    return it[0].graph.parameters - it[1].graph.parameters;
}

/* A label for each token, and an answer's start and end, are linear layers with
 * bias on the last hidden state; T5 classifies what its encoder gives. */
START_TEST(every_head_is_linear)
{
    char json[256];
    const char *type = ms_pages_all[_i].name;
    const char *base = strcmp(type, "t5") == 0 ? "encoder" : "none";
    small(type, json, sizeof json);
    uint64_t three = head_adds(json, "tokens:3", base);
    uint64_t five = head_adds(json, "tokens:5", base);
    uint64_t answers = head_adds(json, "answers", "none");
    ck_assert_msg(5 * three == 3 * five, "%s", type);
    ck_assert_msg(three == 0 || answers == 0 || 3 * answers == 2 * three, "%s",
                  type);
    ck_assert(answers % 2 == 0);
    ck_assert_uint_eq(head_adds(json, "answers:2", "none"), 0);
}
END_TEST

/* The native text that a configuration becomes is the same model. */
START_TEST(every_page_reads_back)
{
    char json[256];
    lowered it, again;
    small(ms_pages_all[_i].name, json, sizeof json);
    ck_assert_int_eq(lower(json, NULL, 0, MS_EAGER, &it), MS_OK);
    ck_assert_ptr_null(strstr(it.model.source, "model_type"));
    ck_assert_int_eq(lower(it.model.source, NULL, 0, MS_EAGER, &again), MS_OK);
    ck_assert_uint_eq(again.graph.parameters, it.graph.parameters);
    ck_assert_uint_eq(again.graph.n_ops, it.graph.n_ops);
    ck_assert_uint_eq(again.graph.n_storages, it.graph.n_storages);
    for (uint32_t s = 0; s < it.graph.n_storages; s++)
        ck_assert_uint_eq(again.graph.storage_bytes[s],
                          it.graph.storage_bytes[s]);
}
END_TEST

START_TEST(pages_are_sorted)
{
    for (uint32_t i = 1; i < ms_pages_n; i++)
        ck_assert_str_lt(ms_pages_all[i - 1].name, ms_pages_all[i].name);
}
END_TEST

/* ---- null, absent and 0 -------------------------------------------------- */

#define LATENT                                                                 \
    "{\"model_type\": \"deepseek_v2\", \"hidden_size\": 64, "                  \
    "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, "                   \
    "\"n_routed_experts\": null, \"vocab_size\": 100, "                        \
    "\"intermediate_size\": 8"

/* q_lora_rank absent: 1536; null: one product makes the queries, as 0. */
START_TEST(null_is_not_absent)
{
    uint64_t absent = count(LATENT "}");
    uint64_t null = count(LATENT ", \"q_lora_rank\": null}");
    uint64_t given = count(LATENT ", \"q_lora_rank\": 1536}");
    uint64_t heads_of_q = 2 * (128 + 64);
    ck_assert_uint_eq(absent, given);
    ck_assert_uint_eq(null, count(LATENT ", \"q_lora_rank\": 0}"));
    ck_assert_uint_eq(given - null,
                      1536 * (64 + 1 + heads_of_q) - 64 * heads_of_q);
}
END_TEST

#define GQA                                                                    \
    "{\"model_type\": \"mistral\", \"hidden_size\": 64, "                      \
    "\"num_hidden_layers\": 1, \"num_attention_heads\": 16, "                  \
    "\"vocab_size\": 100, \"intermediate_size\": 8"

/* Mistral's class has 8 heads of keys; null means as many as of queries. */
START_TEST(null_is_not_the_default)
{
    uint64_t absent = count(GQA "}");
    uint64_t null = count(GQA ", \"num_key_value_heads\": null}");
    ck_assert_uint_eq(absent, count(GQA ", \"num_key_value_heads\": 8}"));
    ck_assert_uint_eq(null, count(GQA ", \"num_key_value_heads\": 16}"));
    ck_assert_uint_eq(null - absent, 2 * 64 * 32);
    ck_assert_uint_eq(count(GQA ", \"sliding_window\": 0}"), absent);
}
END_TEST

/* Names of one key, and a setting by one of them over a file by the other. */
START_TEST(keys_have_other_names)
{
    static const char json[] = "{\"model_type\": \"gpt2\", \"n_layer\": 2, "
                               "\"hidden_size\": 64, \"n_head\": 4}";
    static const char same[] = "{\"model_type\": \"gpt2\", \"n_layer\": 2, "
                               "\"hidden_size\": 64, \"n_embd\": 64, "
                               "\"n_head\": 4}";
    const ms_override set = {"num_hidden_layers", "5"};
    lowered it;
    ck_assert_uint_eq(count(json), count(same));
    ck_assert_int_eq(lower(json, &set, 1, MS_FLASH, &it), MS_OK);
    ck_assert_uint_eq(it.model.n_blocks, 5);
}
END_TEST

/* ---- what a configuration means ------------------------------------------ */

/* gpt2 has a native twin: the same layers; op by op the same step where both
 * are counted as in Korthikanti et al., and not each in its own code. */
START_TEST(gpt2_is_gpt2)
{
    static const char json[] = "{\"model_type\": \"gpt2\"}";
    const ms_override set = {"activation", "gelu_new"};
    const ms_shape shape = {.batch = 1, .micro_batches = 1, .data_ranks = 1};
    lowered it;
    ms_model native;
    ms_graph graph;
    ck_assert_int_eq(lower(json, NULL, 0, MS_KORTHIKANTI, &it), MS_OK);
    ck_assert_int_eq(ms_read_model("gpt2", &set, 1, &arena, &native, &fault),
                     MS_OK);
    ck_assert_int_eq(ms_dag_order(&native, &arena, &fault), MS_OK);
    ck_assert_int_eq(ms_lower(&native, &it.training, ms_devicerows_at(0),
                              &shape, &arena, &graph, &fault),
                     MS_OK);
    ck_assert_uint_eq(native.n_layers, it.model.n_layers);
    for (uint32_t l = 0; l < native.n_layers; l++) {
        ck_assert_str_eq(native.layers[l].name, it.model.layers[l].name);
        ck_assert_ptr_eq(native.layers[l].kind, it.model.layers[l].kind);
    }
    ck_assert_uint_eq(graph.n_ops, it.graph.n_ops);
    ck_assert_uint_eq(graph.n_storages, it.graph.n_storages);
    for (uint32_t s = 0; s < graph.n_storages; s++)
        ck_assert_uint_eq(graph.storage_bytes[s], it.graph.storage_bytes[s]);
}
END_TEST

static uint32_t count_type(const ms_model *model, const char *type)
{
    uint32_t n = 0;
    for (uint32_t l = 0; l < model->n_layers; l++)
        n += strcmp(model->layers[l].kind->type, type) == 0;
    return n;
}

/* Blocks are named by their number though unlike ones repeat apart. */
START_TEST(blocks_may_differ)
{
    static const char json[] =
        "{\"model_type\": \"qwen3_moe\", \"num_hidden_layers\": 6, "
        "\"mlp_only_layers\": [5], \"decoder_sparse_step\": 2}";
    lowered it;
    char name[32];
    ck_assert_int_eq(lower(json, NULL, 0, MS_FLASH, &it), MS_OK);
    ck_assert_uint_eq(it.model.n_blocks, 6);
    ck_assert_uint_eq(count_type(&it.model, "moe"), 2); /* 1 and 3 */
    for (uint32_t b = 0; b < 6; b++) {
        snprintf(name, sizeof name, "layers.%u", b);
        ck_assert_str_eq(it.model.block_names[b], name);
    }
}
END_TEST

/* A window costs no memory and saves FLOPs once the sequence is longer. */
START_TEST(windows_save_flops)
{
    static const char wide[] = "{\"model_type\": \"mistral\", "
                               "\"num_hidden_layers\": 1, "
                               "\"sliding_window\": 16}";
    static const char narrow[] = "{\"model_type\": \"mistral\", "
                                 "\"num_hidden_layers\": 1, "
                                 "\"sliding_window\": 4}";
    lowered a, b;
    double flops[2] = {0};
    ck_assert_int_eq(lower(wide, NULL, 0, MS_FLASH, &a), MS_OK);
    ck_assert_int_eq(lower(narrow, NULL, 0, MS_FLASH, &b), MS_OK);
    ck_assert_uint_eq(a.graph.n_ops, b.graph.n_ops);
    for (uint32_t op = 0; op < a.graph.n_ops; op++) {
        flops[0] += a.graph.op_flops[op];
        flops[1] += b.graph.op_flops[op];
    }
    /* 16 queries of 4096 channels: 128 pairs, or 64 - 8; backward 2.5. */
    ck_assert_double_eq_tol(flops[0] - flops[1], 3.5 * 4 * 4096 * (128 - 56),
                            1);
}
END_TEST

START_TEST(refused_is_said)
{
    static const char json[] = "{\"model_type\": \"gemma3\"}";
    ms_model model;
    ck_assert_int_eq(ms_read_model_bytes("config.json", json, strlen(json),
                                         NULL, 0, &arena, &model, &fault),
                     MS_OK);
    ck_assert_ptr_nonnull(model.refusal);
    ck_assert_ptr_nonnull(strstr(model.assumed, "hidden_size=2304"));
}
END_TEST

Suite *suite_pages(void)
{
    Suite *suite = suite_create("pages");
    TCase *tcase = tcase_create("pages");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, every_page_lowers, 0, (int)ms_pages_n);
    tcase_add_loop_test(tcase, every_head_is_linear, 0, (int)ms_pages_n);
    tcase_add_loop_test(tcase, every_page_reads_back, 0, (int)ms_pages_n);
    tcase_add_test(tcase, pages_are_sorted);
    tcase_add_test(tcase, null_is_not_absent);
    tcase_add_test(tcase, null_is_not_the_default);
    tcase_add_test(tcase, keys_have_other_names);
    tcase_add_test(tcase, gpt2_is_gpt2);
    tcase_add_test(tcase, blocks_may_differ);
    tcase_add_test(tcase, windows_save_flops);
    tcase_add_test(tcase, refused_is_said);
    suite_add_tcase(suite, tcase);
    return suite;
}
