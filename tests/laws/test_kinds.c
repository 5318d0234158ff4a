/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every op of every built-in model has a kind, and it is that of its row in
 * the op tables; so has every row. */
#include "graphs/aten/atenkinds.h"
#include "tests/tests.h"
#include "tools/tools.h"

#include <stdio.h>
#include <string.h>

static ms_arena arena;
static ms_index rows;

static void set_up(void)
{
    ms_fault fault = {0};
    arena = (ms_arena){0};
    rows = (ms_index){0};
    ck_assert_int_eq(ms_aten_open(&rows, &arena, &fault), MS_OK);
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
        ck_assert_msg(ms_aten_kind(&rows, row[i].op) == row[i].kind,
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

/* An op of the user's own and its backward are of no table. */
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
        ms_op_kind row = aten ? ms_aten_kind(&rows, name + 6) : MS_KIND_OTHER;
        ck_assert_msg(kind != MS_KIND_OTHER || is_own(name),
                      "%s of %s has no kind", name, model);
        ck_assert_msg(row == MS_KIND_OTHER || row == kind,
                      "%s of %s is not what its row says", name, model);
    }
}

/* What cannot be set together with the defaults is passed over. */
static void lower_and_check(const char *model, const ms_training *training)
{
    ms_arena keep = {0}, trial = {0};
    ms_fault fault = {0};
    ms_result result = {0};
    ms_job job;
    ms_settings_init(&job);
    job.model = model;
    job.training = *training;
    if (ms_pipeline_run(&job, &keep, &trial, &result, &fault) == MS_OK)
        check_ops(&result.graph, model);
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

/* Of each family one, with each word of each setting. */
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
    suite_add_tcase(suite, tcase);
    return suite;
}
