/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of a job's settings: a row reads back what it writes, its option
 * sets it, and results and filters have it. */
#include "policies/common/policy.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/settings.h"
#include "tools/job/settings_table.h"
#include "tools/options/options.h"
#include "tools/points/points.h"

#include <stdio.h>
#include <string.h>

static ms_arena arena;

static void setup(void)
{
    arena = (ms_arena){0};
}

static void teardown(void)
{
    ms_arena_free(&arena);
}

/* A value of each row, and what it is in its own words; a new row needs one. */
static const struct {
    const char *key, *value, *written;
} samples[] = {
    {"policy", "checkpoint:every=2", "checkpoint:every=2"},
    {"device", "a100", "a100-80gb-sxm"},
    {"gpus", "8", "8"},
    {"global_batch", "64", "64"},
    {"book", "device", "device"},
    {"wall", "true", "true"},
    {"memory", "80GiB", "85899345920"},
    {"host_memory", "512GiB", "549755813888"},
    {"nvme", "1TB", "1000000000000"},
    {"allocator", "torch,max_split_size_mb:64", "torch,max_split_size_mb:64"},
    {"steps", "4", "4"},
    {"lengths", "512,8x64", "512,8x64"},
    {"program", "/dev/null", "/dev/null"}, /* a file that is there */
};

static const char *sample_of(const char *key, const char **written)
{
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++)
        if (strcmp(samples[i].key, key) == 0) {
            *written = samples[i].written;
            return samples[i].value;
        }
    ck_abort_msg("%s has no sample", key);
    return NULL;
}

START_TEST(what_is_written_reads_back)
{
    const ms_setting *row = &ms_settings_table[_i];
    const char *written, *value = sample_of(row->key, &written);
    ms_fault fault = {.caret = -1};
    ms_job job, again;
    ms_settings_init(&job);
    ms_settings_init(&again);
    ck_assert_int_eq(row->read(row, value, &arena, &job, &fault), MS_OK);
    const char *words = row->write(row, &job, &arena);
    ck_assert_str_eq(words, written);
    ck_assert_int_eq(row->read(row, words, &arena, &again, &fault), MS_OK);
    ck_assert_str_eq(row->write(row, &again, &arena), written);
}
END_TEST

START_TEST(a_row_has_its_option)
{
    const ms_setting *row = &ms_settings_table[_i];
    const ms_option *option = NULL;
    for (uint32_t i = 0; i < ms_options_table_n; i++)
        if (ms_options_table[i].id == row->option &&
            ms_optionuses_of(&ms_options_table[i], MS_FOR_RUN) != NULL)
            option = &ms_options_table[i];
    ck_assert_msg(option != NULL, "%s has no option of run", row->key);
    ck_assert_str_eq(option->name, row->flag + 2);
    ck_assert(ms_words_same(option->name, strlen(option->name), row->key,
                            strlen(row->key)));
    if (row->value != NULL)
        ck_assert_ptr_nonnull(strstr(option->value, row->value));
    if (row->type == MS_SETTING_WORD)
        ck_assert_str_eq(ms_optionuses_of(option, MS_FOR_RUN)->words,
                         row->words);
    ck_assert_ptr_eq(ms_settings_table_option(row->option), row);
    ck_assert(ms_settings_shapes(row->option));
}
END_TEST

START_TEST(a_result_tells_it)
{
    const ms_setting *row = &ms_settings_table[_i];
    const char *written, *value = sample_of(row->key, &written);
    const char *key = ms_arena_format(&arena, "\"%s\": ", row->key);
    ms_text none = {.arena = &arena}, said = none;
    ms_fault fault = {.caret = -1};
    ms_job job;
    ms_settings_init(&job);
    ms_settings_json(&job, &job.training, &none);
    ck_assert_int_eq(row->read(row, value, &arena, &job, &fault), MS_OK);
    ms_settings_json(&job, &job.training, &said);
    ck_assert_int_eq(strstr(none.bytes, key) != NULL,
                     row->json == MS_SETTING_ALWAYS ||
                         row->json == MS_SETTING_OR_NULL);
    const char *at = strstr(said.bytes, key);
    ck_assert_int_eq(at != NULL, row->json != MS_SETTING_UNTOLD);
    if (at != NULL) {
        at += strlen(key) + (at[strlen(key)] == '"');
        ck_assert_int_eq(strncmp(at, written, strlen(written)), 0);
    }
}
END_TEST

/* Also of what no point says. */
START_TEST(filters_know_it)
{
    const ms_setting *row = &ms_settings_table[_i];
    const char *words[] = {"gpt2", "--filter",
                           ms_arena_format(&arena, "%s~x", row->key)};
    ms_fault fault = {.caret = -1};
    ms_arguments arguments;
    ms_grid grid = {0};
    ms_filters filters;
    ms_job job;
    ms_settings_init(&job);
    ck_assert_int_eq(
        ms_options_parse(MS_FOR_SWEEP, words, 3, &arena, &arguments, &fault),
        MS_OK);
    ms_err err =
        ms_filter_read(&arguments, &grid, &job, &arena, &filters, &fault);
    bool said = row->write(row, &job, &arena) != NULL;
    ck_assert_int_eq(err, row->in_grid && said ? MS_OK : MS_EUSAGE);
    if (err != MS_OK)
        ck_assert_ptr_nonnull(
            strstr(fault.what, row->in_grid ? "has no value" : "nor a key"));
}
END_TEST

Suite *suite_settings(void)
{
    Suite *suite = suite_create("settings");
    TCase *tcase = tcase_create("settings");
    int n = (int)ms_settings_table_n;
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, what_is_written_reads_back, 0, n);
    tcase_add_loop_test(tcase, a_row_has_its_option, 0, n);
    tcase_add_loop_test(tcase, a_result_tells_it, 0, n);
    tcase_add_loop_test(tcase, filters_know_it, 0, n);
    suite_add_tcase(suite, tcase);
    return suite;
}
