/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A built-in model is its config.json: the same layers, step and bytes, though
 * one is written in the native format and the other made from a page.  And each
 * architecture has blocks that checkpoint policies can use. */
#include "graphs/device.h"
#include "graphs/kernels/kernels.h"
#include "graphs/model.h"
#include "graphs/modelgraph.h"
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/cli/commands.h"
#include "tools/job/result.h"

#include <string.h>

#define MOST_SETTINGS 8u

static ms_arena arena;

typedef struct lowered {
    ms_model model;
    ms_graph graph;
    uint64_t active, saved_bytes;
    double flops;
} lowered;

/* Splits "a=1 b=2" into settings; "-" has none. */
static uint32_t split(const char *words, ms_override set[MOST_SETTINGS])
{
    uint32_t n = 0;
    char *at = (char *)(uintptr_t)ms_arena_text(&arena, words, strlen(words));
    ck_assert_ptr_nonnull(at);
    for (char *key = strtok(at, " "); key != NULL; key = strtok(NULL, " ")) {
        char *value = strchr(key, '=');
        if (value == NULL)
            continue;
        ck_assert_uint_lt(n, MOST_SETTINGS);
        *value++ = '\0';
        set[n++] = (ms_override){key, value};
    }
    return n;
}

static void lower(const char *name, int64_t kernels, ms_err err,
                  ms_fault *fault, lowered *it)
{
    const ms_shape shape = {.batch = 1, .micro_batches = 1, .data_ranks = 1};
    ms_training training;
    ms_layer_facts *facts;
    ms_training_init(&training);
    training.kernels = kernels;
    training.sequence = 16;
    if (err == MS_OK)
        err = ms_resolve_training(&training, &it->model, fault);
    if (err == MS_OK)
        err = ms_dag_order(&it->model, &arena, fault);
    if (err == MS_OK)
        err = ms_lower(&it->model, &training, ms_devicerows_at(0), &shape,
                       &arena, &it->graph, fault);
    if (err == MS_OK)
        err = ms_lower_facts(&it->model, &it->graph, &arena, &facts, fault);
    ck_assert_msg(err == MS_OK, "%s: %s: %s", name, fault->where, fault->what);
    it->active = it->saved_bytes = 0;
    it->flops = 0;
    for (uint32_t i = 0; i < it->graph.n_layers; i++) {
        it->active += facts[i].active;
        it->saved_bytes += facts[i].saved_bytes;
        it->flops += facts[i].forward_flops + facts[i].backward_flops;
    }
}

static void lower_native(const truth_table *table, uint32_t row,
                         int64_t kernels, lowered *it)
{
    ms_fault fault = {0};
    ms_override set[MOST_SETTINGS];
    const char *name = truth_cell(table, row, "model");
    uint32_t n = split(truth_cell(table, row, "set"), set);
    ms_err err = ms_read_model(name, set, n, &arena, &it->model, &fault);
    lower(name, kernels, err, &fault, it);
}

static void lower_config(const truth_table *table, uint32_t row,
                         const char *config, int64_t kernels, lowered *it)
{
    ms_fault fault = {0};
    ms_override set[MOST_SETTINGS];
    uint32_t n = split(truth_cell(table, row, "config_set"), set);
    ms_err err = ms_read_model_bytes("config.json", config, strlen(config), set,
                                     n, &arena, &it->model, &fault);
    lower(truth_cell(table, row, "case"), kernels, err, &fault, it);
}

static const char *config_of(const truth_table *configs, const char *name)
{
    for (uint32_t row = 0; row < configs->n_rows; row++)
        if (strcmp(truth_cell(configs, row, "case"), name) == 0)
            return truth_cell(configs, row, "config");
    ck_abort_msg("no configuration of %s", name);
    return NULL;
}

static void compare(const char *name, const lowered *native,
                    const lowered *config, bool counts_only)
{
    const ms_graph *a = &native->graph, *b = &config->graph;
#define SAME(x, y) ck_assert_msg((x) == (y), "%s: %s", name, #x)
    SAME(a->parameters, b->parameters);
    SAME(native->active, config->active);
    SAME(native->model.n_blocks, config->model.n_blocks);
    SAME(native->model.max_sequence, config->model.max_sequence);
    if (counts_only)
        return;
    SAME(native->saved_bytes, config->saved_bytes);
    SAME(native->flops, config->flops);
    SAME(a->n_ops, b->n_ops);
    for (uint32_t op = 0; op < a->n_ops; op++)
        SAME(strcmp(a->op_name[op], b->op_name[op]), 0);
    SAME(a->n_storages, b->n_storages);
    for (uint32_t s = 0; s < a->n_storages; s++)
        SAME(a->storage_bytes[s], b->storage_bytes[s]);
#undef SAME
}

static void compare_kernels(int64_t kernels)
{
    truth_table table, configs;
    truth_begin();
    truth_read_here("native.tsv", &table);
    truth_read_here("huggingface.tsv", &configs);
    for (uint32_t row = 0; row < table.n_rows; row++) {
        lowered native, config;
        const char *name = truth_cell(&table, row, "case");
        lower_native(&table, row, kernels, &native);
        lower_config(&table, row, config_of(&configs, name), kernels, &config);
        compare(name, &native, &config,
                strcmp(truth_cell(&table, row, "what"), "counts") == 0);
        ms_arena_reset(&arena);
    }
    ms_arena_free(&arena);
    truth_end();
}

START_TEST(natives_are_their_configurations)
{
    compare_kernels(MS_FUSED);
}
END_TEST

START_TEST(natives_are_their_configurations_firm)
{
    compare_kernels(MS_KORTHIKANTI);
}
END_TEST

/* ---- checkpoints --------------------------------------------------------- */

/* Settings that make models small, and the number of blocks they have then. */
static const struct {
    const char *model;
    uint32_t blocks;
} checkpointed[] = {
    {"roberta-base --set model.layers=4", 4},
    {"t5-small --set model.layers=2", 4},
    {"t5-v1.1-base --set model.layers=2", 4},
    {"opt-350m --set model.layers=4", 4},
    {"bloom-560m --set model.layers=4", 4},
    {"pythia-410m --set model.layers=4", 4},
    {"falcon-7b --set model.layers=4", 4},
    {"falcon-40b --set model.layers=4", 4},
    {"mpt-7b --set model.layers=4", 4},
    {"llama-7b --set model.layers=4", 4},
    {"qwen2-0.5b --set model.layers=4", 4},
    {"qwen3-0.6b --set model.layers=4", 4},
    {"gemma-2b --set model.layers=4", 4},
    {"gemma-2-2b --set model.layers=4", 4},
    {"gemma-3-1b --set model.layers=4", 4},
    {"phi-3-mini --set model.layers=4", 4},
    {"olmo-2-7b --set model.layers=4", 4},
    {"mixtral-8x7b --set model.layers=4", 4},
    {"qwen3-30b-a3b --set model.layers=4", 4},
    {"gpt-oss-20b --set model.layers=4", 4},
    {"deepseek-v2-lite --set model.layers=4", 4},
    {"deepseek-v3 --set model.layers=4", 4},
    {"densenet121", 58}, /* its dense layers */
    {"sd-1.5-unet", 38}, /* 22 resnets and 16 transformer blocks */
};

static uint64_t saved_under(const char *model, const char *policy,
                            uint32_t *blocks)
{
    const ms_result *result =
        truth_run("%s --batch 2 --policy %s", model, policy);
    *blocks = result->graph->n_blocks;
    return truth_rank(result)->saved_for_backward_bytes;
}

/* full keeps only what leaves a block; sqrt also keeps the saves of the last
 * segment. */
START_TEST(families_have_blocks)
{
    const char *model = checkpointed[_i].model;
    uint32_t blocks;
    truth_begin();
    uint64_t none = saved_under(model, "none", &blocks);
    ck_assert_msg(blocks == checkpointed[_i].blocks, "%s: %u blocks", model,
                  blocks);
    uint64_t full = saved_under(model, "checkpoint:full", &blocks);
    uint64_t sqrt = saved_under(model, "checkpoint:sqrt", &blocks);
    uint64_t every = saved_under(model, "checkpoint:every=2", &blocks);
    ck_assert_msg(full < sqrt && sqrt < none && every <= sqrt, "%s", model);
    truth_end();
}
END_TEST

Suite *suite_native(void)
{
    Suite *suite = suite_create("native");
    TCase *tcase = tcase_create("native");
    tcase_add_test(tcase, natives_are_their_configurations);
    tcase_add_test(tcase, natives_are_their_configurations_firm);
    tcase_add_loop_test(tcase, families_have_blocks, 0,
                        sizeof checkpointed / sizeof *checkpointed);
    suite_add_tcase(suite, tcase);
    return suite;
}
