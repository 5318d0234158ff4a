/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Layer types one by one: what they keep and what backward allocates. */
#include "graphs/layertypes.h"
#include "graphs/model.h"
#include "sim/base/files.h"
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/truth/truth.h"
#include "tools/job/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WORTH_A_LOOK 65u /* bytes; smaller blocks are not in the table */

#define MAX_ALLOCATIONS 4096u

/* The layer's inputs are made by ops that keep nothing. */
static const char op[] = "{\"type\": \"op\", \"name\": \"%s\", \"shape\": %s, "
                         "\"inputs\": [\"input\"]},";

/* "3*1024 64", the sizes that layer "y" allocates in backward, in order. */
static void put_backward(const ms_result *result, ms_text *text)
{
    const ms_plan *plan = result->plan;
    const ms_graph *graph = plan->graph;
    uint64_t sizes[MAX_ALLOCATIONS];
    uint32_t n = 0;
    for (uint32_t r = 0; r < plan->n_rows && n < MAX_ALLOCATIONS; r++) {
        const ms_plan_op *made = &plan->op[plan->row[r].op];
        if (made->of == MS_NONE || graph->op_layer[made->of] == MS_NONE ||
            (made->pass != MS_GRAD_INPUT && made->pass != MS_GRAD_WEIGHT) ||
            plan->row[r].category == MS_WORKSPACE ||
            plan->row[r].bytes < WORTH_A_LOOK ||
            strcmp(graph->layer_name[graph->op_layer[made->of]], "y") != 0)
            continue;
        sizes[n++] = plan->row[r].bytes;
    }
    for (uint32_t i = 0, same; i < n; i += same) {
        for (same = 1; i + same < n && sizes[i + same] == sizes[i];)
            same++;
        ms_text_add(text, i > 0 ? " " : "");
        if (same > 1)
            ms_text_add(text, "%u*", same);
        ms_text_add(text, "%" PRIu64, sizes[i]);
    }
    if (n == 0)
        ms_text_add(text, "-");
}

static const char *model_of(const truth_table *table, uint32_t row,
                            ms_arena *arena)
{
    const char *sample = truth_cell(table, row, "sample");
    const char *layer = truth_cell(table, row, "layer");
    ms_text json = {.arena = arena};
    ms_text_add(&json,
                "{\"memsim\": 1, \"name\": \"layer\", \"input\": "
                "{\"shape\": %s}, \"layers\": [",
                sample);
    for (const char *name = "wzx"; *name != '\0'; name++) {
        const char is[] = {'"', *name, '"', '\0'};
        const char own[] = {*name, '\0'};
        if (*name == 'x' || strstr(layer, is) != NULL)
            ms_text_add(&json, op, own, sample);
    }
    ms_text_add(&json, "{\"name\": \"y\", %s}", layer);
    if (strcmp(truth_cell(table, row, "ends"), "mean") == 0)
        ms_text_add(&json, ", {\"type\": \"mean\"}");
    ms_text_add(&json, "]}");
    ck_assert(!json.failed);
    return json.bytes;
}

static void compare(const truth_table *table, uint32_t row)
{
    ms_arena arena = {0};
    ms_text backward = {.arena = &arena};
    const char *name = truth_cell(table, row, "case");
    const char *sample = truth_cell(table, row, "sample");
    bool image = strchr(sample, ',') != NULL &&
                 strchr(strchr(sample, ',') + 1, ',') != NULL;
    const ms_result *result =
        truth_run_json(model_of(table, row, &arena),
                       "layer --batch %d --kernels eager --precision fp32 "
                       "--framework torch-1.13 --set training.device=cpu",
                       image ? 4 : 8);
    truth_compare("layers", name, "saved_bytes",
                  truth_number(table, row, "saved_bytes"),
                  truth_rank(result)->saved_for_backward_bytes);
    put_backward(result, &backward);
    truth_compare_words("layers", name, "backward_bytes",
                        truth_cell(table, row, "backward_bytes"),
                        backward.bytes);
    ms_arena_free(&arena);
}

START_TEST(one_layer)
{
    truth_table table;
    truth_begin();
    truth_read_here("layers.tsv", &table);
    for (uint32_t row = 0; row < table.n_rows; row++)
        compare(&table, row);
    truth_end();
}
END_TEST

/* ---- every type is tried ------------------------------------------------- */

/* Types that are compared as part of a whole model whose numbers are known.
 * A C file has these models as strings. */
static const struct {
    const char *type, *model;
} wholes[] = {
    {"embedding", "tests/truth/files/bert-large-pretraining.json"},
    {"learned_tokens", "graphs/models/huggingface/vit.json"},
    {"gelu_new", "tests/truth/files/codegen-16b.json"},
    {"stochastic_depth", "graphs/models/builtin/swin-t.json"},
    {"cast", "graphs/models/huggingface/gpt2.json"},
    {"rms_norm", "tests/truth/files/swiglu-decoder.json"},
    {"attention", "tests/truth/files/bert-layer.json"},
    {"multihead_attention", "tests/truth/files/post-norm.json"},
    {"window_attention", "tests/truth/files/maxvit-t.json"},
    {"latent_attention", "graphs/models/builtin/deepseek-v3.json"},
    {"relative_attention", "graphs/models/builtin/t5-small.json"},
    {"relative_bias", "graphs/models/builtin/t5-small.json"},
    {"scaled_dot_product_attention", "tests/truth/files/sdpa.json"},
    {"rotary", "tests/truth/test_liger.c"},
    {"moe", "graphs/models/builtin/qwen3-30b-a3b.json"},
    {"reshape", "tests/truth/files/mixer-b16.json"},
    {"expand", "tests/truth/files/deit3-base.json"},
    {"patch_merge", "graphs/models/builtin/swin-t.json"},
    {"span_loss", "graphs/models/huggingface/bert.json"},
    {"total_loss", "graphs/models/huggingface/llama.json"},
    {"parameter", "tests/truth/files/sdpa.json"},
    {"input", "graphs/models/builtin/sd-1.5-unet.json"},
    {"parameters", "tests/truth/files/inception-v3.json"},
};

static const char *whole_of(const char *type)
{
    for (size_t i = 0; i < sizeof wholes / sizeof *wholes; i++)
        if (strcmp(wholes[i].type, type) == 0)
            return wholes[i].model;
    return "tests/truth/layers.tsv";
}

/* A new type needs a row of the table, or a model here that contains it. */
START_TEST(every_type_is_tried)
{
    for (uint32_t i = 0; i < ms_layer_n_kinds; i++) {
        const char *type = ms_layer_kinds[i].type;
        char path[TESTS_PATH], json[64], quoted[64], *text;
        ms_arena arena = {0};
        ms_fault fault = {0};
        size_t length;
        if (strcmp(type, "op") == 0) /* the samples consist of such ops */
            continue;
        if (strstr(type, "stage") != NULL) /* of chains: test_optimum.c */
            continue;
        tests_source(whole_of(type), path);
        snprintf(json, sizeof json, "\"type\": \"%s\"", type);
        snprintf(quoted, sizeof quoted, "\\\"type\\\": \\\"%s\\\"", type);
        ck_assert_int_eq(
            ms_files_read(path, 1 << 26, &arena, &text, &length, &fault),
            MS_OK);
        ck_assert_msg(strstr(text, json) != NULL ||
                          strstr(text, quoted) != NULL,
                      "%s: %s has no such layer", type, whole_of(type));
        ms_arena_free(&arena);
    }
}
END_TEST

Suite *suite_layers(void)
{
    Suite *suite = suite_create("layers");
    TCase *tcase = tcase_create("layers");
    tcase_add_test(tcase, one_layer);
    tcase_add_test(tcase, every_type_is_tried);
    suite_add_tcase(suite, tcase);
    return suite;
}
