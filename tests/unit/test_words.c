/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Words of other programs: each row of each table is understood as what it
 * means, or the message says what to type instead. */
#include "graphs/device.h"
#include "graphs/field.h"
#include "graphs/model.h"
#include "graphs/models/files/namewords.h"
#include "graphs/settings/settingwords.h"
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/lengths.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"
#include "tools/options/optionwords.h"
#include "tools/terminal/quantity.h"

#include <stdio.h>
#include <string.h>

#define MAX_WORDS 24
#define LONGEST 64

static ms_arena keep, trial;
static ms_fault fault;

static void setup(void)
{
    keep = trial = (ms_arena){0};
    fault = (ms_fault){.caret = -1};
}

static void teardown(void)
{
    ms_arena_free(&keep);
    ms_arena_free(&trial);
}

static void demand(ms_err err, const char *word)
{
    ck_assert_msg(err == MS_OK, "%s: %s: %s", word, fault.where, fault.what);
}

/* The k-th word of a row, a pattern's shortest; false: there is none. */
static bool word_of(const ms_word *row, uint32_t k, char word[LONGEST])
{
    const char *at = row->words;
    for (; k > 0 && at != NULL; k--) {
        at = strchr(at, '|');
        at = at != NULL ? at + 1 : NULL;
    }
    if (at == NULL)
        return false;
    size_t length = strcspn(at, "|");
    ck_assert_uint_lt(length, LONGEST);
    snprintf(word, LONGEST, "%.*s", (int)(length - (at[length - 1] == '*')),
             at);
    return true;
}

/* Calls check with each word of a table. */
static void each(const ms_words *table,
                 void (*check)(const ms_word *row, const char *word))
{
    char word[LONGEST];
    for (uint32_t i = 0; i < table->n; i++)
        for (uint32_t k = 0; word_of(&table->rows[i], k, word); k++)
            check(&table->rows[i], word);
}

START_TEST(loosely_the_same)
{
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {{"Batch_Size", "batch-size", true},
                {"RTX 4090", "rtx4090", true},
                {"torch-2.5", "torch-25", false},
                {"", "-_ ", true},
                {"adam", "adamw", false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ck_assert_int_eq(ms_words_same(rows[i].a, strlen(rows[i].a), rows[i].b,
                                       strlen(rows[i].b)),
                         rows[i].same);
    ck_assert_int_eq(ms_words_index("a|b-c|2.*", "BC", 2), 1);
    ck_assert_int_eq(ms_words_index("a|b-c|2.*", "2.10", 4), 2);
    ck_assert_int_eq(ms_words_index("a|b-c|2.*", "2", 1), -1);
}
END_TEST

/* A row says one thing: what it means, or what to type, or why there is
 * nothing; and no word is in two rows of its kind. */
START_TEST(tables_are_sound)
{
    char word[LONGEST];
    for (uint32_t t = 0; t < MS_OPTIONWORDS_TABLES; t++) {
        const ms_words *table = ms_optionwords_tables[t];
        for (uint32_t i = 0; i < table->n; i++) {
            const ms_word *row = &table->rows[i];
            ck_assert((row->means != NULL) != (row->say != NULL));
            ck_assert(row->means == NULL || row->instead == NULL);
            for (uint32_t k = 0; word_of(row, k, word); k++)
                ck_assert_msg(
                    ms_words_find(table, row->of, word, strlen(word)) == row ||
                        strchr(row->words, '*') != NULL,
                    "%s: \"%s\" is in two rows", table->title, word);
        }
    }
}
END_TEST

/* ---- understood ---------------------------------------------------------- */

static const ms_option *option_of(const char *name)
{
    for (uint32_t i = 0; i < ms_options_table_n; i++)
        if (strcmp(ms_options_table[i].name, name) == 0)
            return &ms_options_table[i];
    return NULL;
}

static void check_option(const ms_word *row, const char *word)
{
    const ms_word *answered;
    ck_assert_msg(option_of(word) == NULL, "--%s is an option", word);
    if (row->means == NULL)
        return;
    const ms_option *option = option_of(row->means);
    ck_assert_msg(option != NULL, "--%s is no option", row->means);
    const ms_option *found = ms_optionwords_find(option->uses[0].commands, word,
                                                 strlen(word), &answered);
    ck_assert_msg(found != NULL, "--%s", word);
    ck_assert_str_eq(found->name, row->means);
}

static void check_key(const ms_word *row, const char *word)
{
    char key[2 * LONGEST];
    snprintf(key, sizeof key, "%s.%s", row->of, word);
    ck_assert_msg(
        ms_training_row(key) ==
            (row->means != NULL ? ms_training_row(row->means) : MS_NONE),
        "%s", key);
    ck_assert(row->means == NULL || ms_training_row(row->means) != MS_NONE);
}

static ms_label value_of(const ms_training *training, uint32_t field)
{
    ms_label value;
    ms_training_value(training, field, value.s, sizeof value.s);
    return value;
}

static void check_value_of(const ms_word *row, const char *word, uint32_t field)
{
    ms_training a, b;
    char key[LONGEST];
    snprintf(key, sizeof key, "%s.%s", ms_training_group(field),
             ms_training_fields[field].name);
    ms_training_init(&a);
    ms_training_init(&b);
    ms_err err = ms_training_set(&a, key, word, &fault);
    if (row->means == NULL) {
        ck_assert_int_eq(err, MS_EUSAGE);
        ck_assert_msg(strstr(fault.hint, row->say) != NULL, "%s", word);
        fault = (ms_fault){.caret = -1};
        return;
    }
    demand(err, word);
    demand(ms_training_set(&b, key, row->means, &fault), row->means);
    ck_assert_str_eq(value_of(&a, field).s, value_of(&b, field).s);
}

/* By the field's name, or by its words. */
static void check_value(const ms_word *row, const char *word)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < ms_training_n_fields; i++) {
        const ms_field *field = &ms_training_fields[i];
        bool by_words =
            field->words != NULL && strcmp(field->words, row->of) == 0;
        if (!by_words && strcmp(field->name, row->of) != 0)
            continue;
        check_value_of(row, word, i);
        n++;
    }
    ck_assert_msg(n > 0, "no field is \"%s\"", row->of);
}

/* As the parser leaves it: the canonical spelling, or what it says. */
static const char *spelled(const char *text)
{
    ms_spec spec = {0};
    fault = (ms_fault){.caret = -1};
    ms_err err = ms_spec_parse(text, &keep, &spec, &fault);
    return err == MS_OK ? ms_spec_print(&spec, &keep)
                        : ms_arena_format(&keep, "%s", fault.what);
}

static void check_policy(const ms_word *row, const char *word)
{
    if (strcmp(row->of, "policy") != 0)
        return;
    char means[LONGEST] = "";
    const char *got = spelled(word);
    if (row->means == NULL) {
        ck_assert_msg(strncmp(got, "unknown policy", 14) == 0, "%s", word);
        return;
    }
    const char *unless = strchr(row->means, '?');
    snprintf(means, sizeof means, "%.*s%s", (int)strcspn(row->means, "?"),
             row->means, unless != NULL ? unless + 1 : "");
    ck_assert_str_eq(got, spelled(means));
    ck_assert_msg(strstr(got, "unknown") == NULL, "%s: %s", word, got);
}

static void check_device(const ms_word *row, const char *word)
{
    const ms_device *a, *b;
    ms_err err = ms_device_find(word, &a, &fault);
    ck_assert_msg((err == MS_OK) == (row->means != NULL), "%s", word);
    if (err == MS_OK) {
        demand(ms_device_find(row->means, &b, &fault), row->means);
        ck_assert_ptr_eq(a, b);
    }
    fault = (ms_fault){.caret = -1};
}

static void check_model(const ms_word *row, const char *word)
{
    char hint[384];
    const ms_builtin *builtin = ms_namewords_model(word, hint, sizeof hint);
    ck_assert_msg((builtin != NULL) == (row->means != NULL), "%s", word);
    if (builtin != NULL)
        ck_assert_str_eq(builtin->name, row->means);
}

static void check_command(const ms_word *row, const char *word)
{
    char named[LONGEST];
    ck_assert_int_eq(sscanf(row->say, "write memsim %63[a-z]", named) == 1 ||
                         strstr(row->say, "--version") != NULL,
                     1);
    bool is_command = strstr(row->say, "--version") != NULL;
    for (size_t i = 0; i < ms_commands_all.n; i++) {
        ck_assert_str_ne(ms_commands_all.rows[i].name, word);
        is_command |= strcmp(ms_commands_all.rows[i].name, named) == 0;
    }
    ck_assert_msg(is_command, "%s", row->say);
}

START_TEST(each_word_is_understood_or_answered)
{
    each(&ms_optionwords_options, check_option);
    each(&ms_optionwords_commands, check_command);
    each(&ms_settingwords_keys, check_key);
    each(&ms_settingwords_values, check_value);
    each(&ms_policywords_table, check_policy);
    each(&ms_namewords_devices, check_device);
    each(&ms_namewords_models, check_model);
}
END_TEST

/* However they are joined and whatever the case. */
START_TEST(names_of_ours_loosely)
{
    static const char *const devices[] = {"NVIDIA GeForce RTX 4090",
                                          "rtx4090-24gb",
                                          "RTX-4090",
                                          "rtx4090-24gb",
                                          "H100",
                                          "h100-80gb-sxm",
                                          "NVIDIA A100-SXM4-80GB",
                                          "a100-80gb-sxm",
                                          "Tesla V100-SXM2-32GB",
                                          "v100-32gb-sxm2",
                                          "A100 80GB PCIe",
                                          "a100-80gb-pcie",
                                          "NVIDIA L40S",
                                          "l40s-48gb",
                                          "nvidia-t4",
                                          "t4-16gb"};
    static const char *const models[] = {"Llama-3-8B",
                                         "llama-3-8b",
                                         "llama3-8b.json",
                                         "llama-3-8b",
                                         "gpt-2",
                                         "gpt2",
                                         "GPT2-XL",
                                         "gpt2-xl",
                                         "Meta-Llama-3.1-8B-Instruct",
                                         "llama-3.1-8b",
                                         "Qwen2.5-7B-Instruct",
                                         "qwen2.5-7b",
                                         "gemma-2-9b-it",
                                         "gemma-2-9b",
                                         "ResNet-50",
                                         "resnet50",
                                         "GPT-3",
                                         "gpt3"};
    const ms_device *device;
    char hint[384];
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i += 2) {
        demand(ms_device_find(devices[i], &device, &fault), devices[i]);
        ck_assert_str_eq(device->name, devices[i + 1]);
    }
    for (size_t i = 0; i < sizeof models / sizeof *models; i += 2) {
        const ms_builtin *m = ms_namewords_model(models[i], hint, sizeof hint);
        ck_assert_msg(m != NULL, "%s", models[i]);
        ck_assert_str_eq(m->name, models[i + 1]);
    }
    for (uint32_t i = 0; i < ms_builtin_n_models; i++)
        ck_assert_ptr_eq(
            ms_namewords_model(ms_builtin_models[i].name, hint, sizeof hint),
            &ms_builtin_models[i]);
    for (uint32_t i = 0; i < ms_devices_n; i++) {
        demand(ms_device_find(ms_devices[i].name, &device, &fault), "");
        ck_assert_ptr_eq(device, ms_devicerows_at(i));
    }
}
END_TEST

/* ---- answered ------------------------------------------------------------ */

/* What is to be typed, behind the model. */
static void type_it(const char *model, const char *instead, bool run)
{
    const char *words[MAX_WORDS] = {model, "--set", "model.layers=5",
                                    "--sequence", "64"};
    ms_arguments arguments;
    ms_job job;
    ms_result result;
    uint32_t n = run ? 5 : 1;
    char *at = ms_arena_text(&keep, instead, strlen(instead));
    for (char *next; at != NULL; at = next) {
        next = strchr(at, ' ');
        if (next != NULL)
            *next++ = '\0';
        ck_assert_uint_lt(n, MAX_WORDS);
        words[n++] = at;
    }
    if (!run)
        n--, memmove(words, words + 1, n * sizeof *words);
    demand(ms_options_parse(MS_FOR_RUN, words, n, &keep, &arguments, &fault),
           instead);
    demand(ms_settings_read(&arguments, &keep, &job, &fault), instead);
    if (run)
        demand(ms_jobway_run(&job, &keep, &trial, &result, &fault), instead);
    else
        demand(ms_jobway_read(&job, &keep, &result, &fault), instead);
    teardown();
    setup();
}

START_TEST(each_answer_can_be_typed)
{
    const char *done = "";
    for (uint32_t t = 0; t < MS_OPTIONWORDS_TABLES; t++) {
        const ms_words *table = ms_optionwords_tables[t];
        bool is_model = table == &ms_namewords_models;
        for (uint32_t i = 0; i < table->n; i++) {
            const char *instead = table->rows[i].instead;
            if (instead == NULL || strcmp(instead, done) == 0)
                continue;
            bool experts = strstr(instead, "expert") != NULL;
            type_it(experts ? "mixtral-8x7b" : "gpt2", instead, !is_model);
            done = instead;
        }
    }
}
END_TEST

/* The words of an option are those of the options. */
START_TEST(words_of_an_option)
{
    static const char *const rows[][2] = {{"batch-size", "batch"},
                                          {"batch_size", "batch"},
                                          {"seq", "seq"},
                                          {"Batch", NULL},
                                          {"memory", NULL}};
    ms_arguments arguments;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *words[] = {"gpt2", "--max", rows[i][0]};
        fault = (ms_fault){.caret = -1};
        ms_err err =
            ms_options_parse(MS_FOR_FIT, words, 3, &keep, &arguments, &fault);
        ck_assert_msg((err == MS_OK) == (rows[i][1] != NULL), "%s", rows[i][0]);
        if (err == MS_OK)
            ck_assert_str_eq(ms_options_value(&arguments, MS_OPTION_MAX),
                             rows[i][1]);
    }
}
END_TEST

/* A line to repeat has our words. */
START_TEST(lines_to_repeat)
{
    static const char *const words[] = {"gpt2",        "--batch_size=2",
                                        "--set",       "lora_r=8",
                                        "-p",          "zero-3:dp=8+recompute",
                                        "--precision", "bfloat16",
                                        "--device",    "RTX 4090",
                                        "--set",       "training.optim=sgd"};
    ms_arguments arguments;
    ms_text line = {.arena = &keep};
    demand(ms_options_parse(MS_FOR_RUN, words, 12, &keep, &arguments, &fault),
           "");
    ms_settings_command(&arguments, "--plot", &line);
    ck_assert_str_eq(line.bytes,
                     "memsim run gpt2 --batch 2 --set lora.rank=8 -p "
                     "zero:3,dp=8+checkpoint:full --precision bf16 --device "
                     "rtx4090-24gb --set training.optimizer=sgd --plot");
}
END_TEST

START_TEST(two_names_for_one_setting)
{
    static const struct {
        const char *words[6];
        bool fine;
    } rows[] = {
        {{"gpt2", "--batch=4", "--batch=8"}, true},
        {{"gpt2", "--batch=4", "--set=training.batch=8"}, true},
        {{"gpt2", "--batch-size=4", "--batch_size=8"}, true},
        {{"gpt2", "--batch=4", "--batch-size=8"}, false},
        {{"gpt2", "--set=bs=4", "--batch=8"}, false},
        {{"gpt2", "--set=seq_len=64", "--set=max_length=64"}, false},
        {{"gpt2", "--gpus=8", "--num-gpus=8"}, false},
        {{"gpt2", "--set=lora.rank=8", "--set=lora_r=8"}, false},
    };
    ms_arguments arguments;
    ms_job job;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fault = (ms_fault){.caret = -1};
        demand(ms_options_parse(MS_FOR_RUN, rows[i].words, 3, &keep, &arguments,
                                &fault),
               rows[i].words[1]);
        ms_err err = ms_settings_read(&arguments, &keep, &job, &fault);
        ck_assert_msg((err == MS_OK) == rows[i].fine, "%s %s", rows[i].words[1],
                      rows[i].words[2]);
        ck_assert(rows[i].fine || strstr(fault.what, "two names") != NULL);
    }
}
END_TEST

/* An id of Hugging Face is a path: never a built-in model, always an answer. */
START_TEST(ids_of_hugging_face)
{
    static const struct {
        const char *path, *hint;
    } rows[] = {
        {"meta-llama/Llama-3-8B", "write llama-3-8b"},
        {"Qwen/Qwen2-7B", "write qwen2-7b"},
        {"mistralai/Mistral-7B-v0.1", "mistral-7b --set model.vocab=32000"},
        {"somebody/else", "hf download somebody/else config.json"},
        {"models/none.json", ""},
        {"../some/file", ""},
    };
    ms_model model;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fault = (ms_fault){.caret = -1};
        ck_assert_int_eq(
            ms_read_model(rows[i].path, NULL, 0, &keep, &model, &fault),
            MS_ESYSTEM);
        ck_assert_msg(strstr(fault.hint, rows[i].hint) != NULL, "%s: %s",
                      rows[i].path, fault.hint);
        ck_assert_int_eq(*fault.hint == '\0', *rows[i].hint == '\0');
    }
}
END_TEST

/* "80" is no size of a device. */
START_TEST(sizes_without_unit)
{
    static const char *const fine[] = {"80B", "80GiB", "85899345920", "0", "x"};
    ck_assert_int_eq(ms_quantity_unit("80", "--memory", &fault), MS_EUSAGE);
    ck_assert_ptr_nonnull(strstr(fault.hint, "80GiB"));
    fault = (ms_fault){.caret = -1};
    ck_assert_int_eq(ms_quantity_unit("24564", "--memory", &fault), MS_EUSAGE);
    ck_assert_ptr_nonnull(strstr(fault.hint, "24564MiB"));
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
        ck_assert_int_eq(ms_quantity_unit(fine[i], "", &fault), MS_OK);
}
END_TEST

Suite *suite_words(void)
{
    Suite *suite = suite_create("words");
    TCase *tcase = tcase_create("words");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, loosely_the_same);
    tcase_add_test(tcase, tables_are_sound);
    tcase_add_test(tcase, each_word_is_understood_or_answered);
    tcase_add_test(tcase, names_of_ours_loosely);
    tcase_add_test(tcase, each_answer_can_be_typed);
    tcase_add_test(tcase, words_of_an_option);
    tcase_add_test(tcase, lines_to_repeat);
    tcase_add_test(tcase, two_names_for_one_setting);
    tcase_add_test(tcase, ids_of_hugging_face);
    tcase_add_test(tcase, sizes_without_unit);
    suite_add_tcase(suite, tcase);
    return suite;
}
