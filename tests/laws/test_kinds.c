/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every op of every built-in model has a kind, which is that of its row in the
 * op tables; every row has one; and every layer of a layer list has a role. */
#include "graphs/aten/atenkinds.h"
#include "graphs/field.h"
#include "graphs/model.h"
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"

#include <stdio.h>
#include <string.h>

static ms_arena arena;
static ms_index rows;

static void set_up(void)
{
    ms_fault fault = {0};
    arena = (ms_arena){0};
    rows = (ms_index){0};
    ck_assert_int_eq(ms_atentable_open(&rows, &arena, &fault), MS_OK);
}

static void tear_down(void)
{
    ms_arena_free(&arena);
}

static void check_rows(const ms_aten_row *row, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        ck_assert_msg(row[i].kind > MS_KIND_OTHER && row[i].kind < MS_N_KINDS,
                      "%s has no kind", row[i].op);
        ck_assert_msg(ms_atentable_kind(&rows, row[i].op) == row[i].kind,
                      "rows of %s differ", row[i].op);
    }
}

START_TEST(every_row_has_one)
{
    check_rows(ms_atenpoint_rows, ms_atenpoint_n_rows);
    check_rows(ms_atenview_rows, ms_atenview_n_rows);
    check_rows(ms_atenmath_rows, ms_atenmath_n_rows);
}
END_TEST

/* Ops of the user and their backward are in no table. */
static bool is_own(const char *name)
{
    return strcmp(name, "op") == 0 || strcmp(name, "gradient") == 0;
}

static void check_ops(const ms_graph *graph, const char *model)
{
    for (uint32_t op = 0; op < graph->n_ops; op++) {
        const char *name = graph->op_name[op];
        ms_op_kind kind = (ms_op_kind)graph->op_kind[op];
        bool aten = strncmp(name, "aten::", 6) == 0;
        ms_op_kind row =
            aten ? ms_atentable_kind(&rows, name + 6) : MS_KIND_OTHER;
        ck_assert_msg(kind != MS_KIND_OTHER || is_own(name),
                      "%s of %s has no kind", name, model);
        ck_assert_msg(row == MS_KIND_OTHER || row == kind,
                      "%s of %s is not what its row says", name, model);
    }
}

/* Settings that cannot be combined with the defaults are left out. */
static void lower_and_check(const char *model, const ms_training *training)
{
    ms_arena keep = {0}, trial = {0};
    ms_fault fault = {0};
    ms_result result = {0};
    ms_job job;
    ms_settings_init(&job);
    job.model = model;
    job.training = *training;
    if (ms_jobway_run(&job, &keep, &trial, &result, &fault) == MS_OK)
        check_ops(result.graph, model);
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}

START_TEST(every_op_of_a_builtin_has_one)
{
    ms_training training;
    ms_training_init(&training);
    for (uint32_t m = 0; m < ms_builtin_n_models; m++)
        lower_and_check(ms_builtin_models[m].name, &training);
}
END_TEST

/* One model of each family, with each value of each setting. */
static const char *const some[] = {
    "gpt2",         "bert-base",        "t5-small",   "llama-3.2-1b",
    "mixtral-8x7b", "deepseek-v2-lite", "gemma-2-2b", "vit-b16",
    "resnet18",     "swin-t",           "lstm-lm"};

static void check_words(const char *model, const ms_field *field)
{
    for (const char *at = field->words; at != NULL && *at != '\0';) {
        char word[64];
        size_t n = strcspn(at, "|");
        ms_fault fault = {0};
        ms_training training;
        ms_training_init(&training);
        training.batch = 8;
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        if (ms_training_set(&training, field->name, word, &fault) == MS_OK)
            lower_and_check(model, &training);
        at += n + (at[n] == '|');
    }
}

START_TEST(every_kernel_that_a_setting_chooses_has_one)
{
    for (uint32_t i = 0; i < ms_training_n_fields; i++)
        check_words(some[_i], &ms_training_fields[i]);
}
END_TEST

static void run_builtin(const char *model, ms_arena *keep, ms_result *result)
{
    ms_arena trial = {0};
    ms_fault fault = {0};
    ms_job job;
    *result = (ms_result){0};
    ms_settings_init(&job);
    job.model = model;
    ms_err err = ms_jobway_run(&job, keep, &trial, result, &fault);
    ck_assert_msg(err == MS_OK, "%s: %s", model, fault.what);
    ms_arena_free(&trial);
}

static ms_layer_role role_of(const ms_graph *graph, const char *name)
{
    for (uint32_t l = 0; l < graph->n_layers; l++)
        if (strcmp(graph->layer_name[l], name) == 0)
            return (ms_layer_role)graph->layer_role[l];
    ck_abort_msg("no layer %s", name);
}

START_TEST(layers_are_what_they_are_for)
{
    static const struct {
        const char *model, *layer;
        ms_layer_role role;
    } cases[] = {
        {"gpt2", "embeddings.positions", MS_ROLE_EMBEDDING},
        {"gpt2", "embeddings.add", MS_ROLE_SUM},
        {"gpt2", "layers.3.norm1", MS_ROLE_NORM},
        {"gpt2", "layers.3.attention", MS_ROLE_ATTENTION},
        {"gpt2", "layers.3.mlp.up", MS_ROLE_PROJECTION_IN},
        {"gpt2", "layers.3.mlp.activation", MS_ROLE_ACTIVATION},
        {"gpt2", "layers.3.mlp.down", MS_ROLE_PROJECTION_OUT},
        {"gpt2", "layers.3.residual2", MS_ROLE_SUM},
        {"gpt2", "head", MS_ROLE_HEAD},
        {"gpt2", "loss", MS_ROLE_LOSS},
        {"llama-2-7b", "layers.0.mlp.gate", MS_ROLE_GATE},
        {"llama-2-7b", "layers.0.mlp.up", MS_ROLE_PROJECTION_IN},
        {"llama-2-7b", "layers.0.mlp.activation", MS_ROLE_GATED},
        {"bert-base", "pooler.linear", MS_ROLE_PROJECTION},
        {"bert-base", "loss", MS_ROLE_LOSS}, /* a mean of everything */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_arena keep = {0};
        ms_result result;
        run_builtin(cases[i].model, &keep, &result);
        ck_assert_msg(role_of(result.graph, cases[i].layer) == cases[i].role,
                      "%s of %s", cases[i].layer, cases[i].model);
        ms_arena_free(&keep);
    }
}
END_TEST

/* A linear layer whose output the loss reads is a head. */
static void check_heads(const ms_model *model, const ms_graph *graph)
{
    for (uint32_t l = 0; l < model->n_layers; l++) {
        const ms_layer *layer = &model->layers[l];
        ck_assert_msg(graph->layer_role[l] != MS_ROLE_OTHER,
                      "%s of %s has no role", layer->name, model->name);
        for (uint32_t k = 0;
             k < layer->n_in && graph->layer_role[l] == MS_ROLE_LOSS; k++) {
            uint32_t from = model->edges[layer->in_at + k];
            if (from != MS_NONE && strcmp(graph->layer_type[from], "cast") == 0)
                from = model->edges[model->layers[from].in_at];
            if (from != MS_NONE &&
                strcmp(graph->layer_type[from], "linear") == 0)
                ck_assert_uint_eq(graph->layer_role[from], MS_ROLE_HEAD);
        }
    }
}

START_TEST(every_layer_of_a_builtin_has_a_role)
{
    for (uint32_t m = 0; m < ms_builtin_n_models; m++) {
        ms_arena keep = {0};
        ms_result result;
        run_builtin(ms_builtin_models[m].name, &keep, &result);
        check_heads(&result.model, result.graph);
        ms_arena_free(&keep);
    }
}
END_TEST

Suite *suite_kinds(void)
{
    Suite *suite = suite_create("kinds");
    TCase *tcase = tcase_create("kinds");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, every_row_has_one);
    tcase_add_test(tcase, every_op_of_a_builtin_has_one);
    tcase_add_loop_test(tcase, every_kernel_that_a_setting_chooses_has_one, 0,
                        (int)(sizeof some / sizeof *some));
    tcase_add_test(tcase, layers_are_what_they_are_for);
    tcase_add_test(tcase, every_layer_of_a_builtin_has_a_role);
    suite_add_tcase(suite, tcase);
    return suite;
}
