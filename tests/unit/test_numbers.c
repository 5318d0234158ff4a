/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers and groups of a layer list that are expressions. */
#include "graphs/model.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"

#include "graphs/json/numbers.h"

#include <string.h>

static const ms_variable n = {"n", 6, NULL}, width = {"width", 0.5, &n};

static const struct {
    const char *text;
    double value;
} values[] = {
    {"12", 12},
    {" 4 * ( n + 1 ) ", 28},
    {"2 + 3 * 4 - 1", 13},
    {"7 - 2 - 1", 4},
    {"n / 4", 1.5},
    {"n % 4 + 24 / 2 / 3", 6},
    {"-n + --n", 0},
    {"width * 3", 1.5},
    {"n > 5 && !(n == 7)", 1},
    {"n < 6 || n >= 7", 0},
    {"n != 6 ? 1 : n <= 6 ? 2 : 3", 2},
    {"n == 6 ? 1 : 1 / 0", 1},
    {"min(n, 4) * max(1, n)", 24},
    {"floor(n / 4)", 1},
};

START_TEST(has_the_value)
{
    ms_numbers_error error;
    double value;
    bool fine = ms_numbers_value(values[_i].text, &width, &value, &error);
    ck_assert_msg(fine, "%s: %s", values[_i].text, error.what);
    ck_assert_double_eq(value, values[_i].value);
}
END_TEST

static const struct {
    const char *text, *what;
} refused[] = {
    {"", "a value is missing"},      {"1 +", "a value is missing"},
    {"1 2", "\"2\" is left"},        {"(1", "a ) is missing"},
    {"1 ? 2", "a : is missing"},     {"1.2.3", "is no number"},
    {"m", "there is no value"},      {"sin(1)", "there is no function"},
    {"max(1)", "two values"},        {"1 / 0", "no finite number"},
    {"1 = 2", "is left over"},       {"0 % 0", "no finite number"},
    {"1 == 2 == 0", "is left over"},
};

START_TEST(refuses)
{
    ms_numbers_error error;
    double value;
    ck_assert(!ms_numbers_value(refused[_i].text, &width, &value, &error));
    ck_assert_msg(strstr(error.what, refused[_i].what) != NULL, "%s: %s",
                  refused[_i].text, error.what);
}
END_TEST

START_TEST(is_bounded)
{
    ms_numbers_error error;
    double value;
    char deep[201], text[300];
    memset(deep, '(', 200);
    deep[200] = '\0';
    ck_assert(!ms_numbers_value(deep, NULL, &value, &error));
    ck_assert_str_eq(error.what, "too many parentheses");
    memset(text, '1', 299);
    text[299] = '\0';
    ck_assert(!ms_numbers_value(text, NULL, &value, &error));
    ck_assert_str_eq(error.what, "more than 256 bytes");
}
END_TEST

START_TEST(fills_names)
{
    ms_numbers_error error;
    char buffer[16];
    ck_assert(ms_numbers_fill("a{n - 1}.{n}", &width, buffer, 16, &error));
    ck_assert_str_eq(buffer, "a5.6");
    ck_assert(!ms_numbers_fill("a{width}", &width, buffer, 16, &error));
    ck_assert(!ms_numbers_fill("a{n", &width, buffer, 16, &error));
    ck_assert(!ms_numbers_fill("abcdefg{n}", &width, buffer, 8, &error));
    ck_assert(!ms_numbers_fill("abcdefgh", &width, buffer, 8, &error));
}
END_TEST

/* ---- groups of layers ---------------------------------------------------- */

static const char text[] =
    "{\"memsim\": 1, \"input\": {\"shape\": [\"size\"]},\n"
    " \"config\": {\"size\": 4, \"deep\": 0}, \"layers\": [\n"
    " {\"each\": {\"w\": [4, 8]}, \"index\": \"s\", \"name\": \"s{s + 1}\",\n"
    "  \"layers\": [\n"
    "  {\"repeat\": \"w / 4\", \"name\": \"b\", \"layers\": [\n"
    "   {\"type\": \"linear\", \"name\": \"fc\", \"out\": \"w\"},\n"
    "   {\"type\": \"cat\", \"name\": \"all\",\n"
    "    \"inputs\": [\"fc\", \"b.*\", \"b.input\"]}]},\n"
    "  {\"template\": \"act\", \"name\": \"act\", \"when\": \"deep\"},\n"
    "  {\"type\": \"add\", \"name\": \"twice\", \"inputs\": [\"act\", "
    "\"b\"]}]},\n"
    " {\"type\": \"mean\"}],\n"
    " \"templates\": {\"act\": [{\"type\": \"relu\", \"name\": \"relu\"}]}}";

static const char *const wanted[2] = {
    "s1.b.0.fc <input\n"
    "s1.b.0.all <s1.b.0.fc,input\n"
    "s1.twice <s1.b.0.all,s1.b.0.all\n"
    "s2.b.0.fc <s1.twice\n"
    "s2.b.0.all <s2.b.0.fc,s1.twice\n"
    "s2.b.1.fc <s2.b.0.all\n"
    "s2.b.1.all <s2.b.1.fc,s2.b.0.all,s1.twice\n"
    "s2.twice <s2.b.1.all,s2.b.1.all\n"
    "mean1 <s2.twice\n",
    "s1.b.0.fc <input\n"
    "s1.b.0.all <s1.b.0.fc,input\n"
    "s1.act.relu <s1.b.0.all\n"
    "s1.twice <s1.act.relu,s1.b.0.all\n"
    "s2.b.0.fc <s1.twice\n"
    "s2.b.0.all <s2.b.0.fc,s1.twice\n"
    "s2.b.1.fc <s2.b.0.all\n"
    "s2.b.1.all <s2.b.1.fc,s2.b.0.all,s1.twice\n"
    "s2.act.relu <s2.b.1.all\n"
    "s2.twice <s2.act.relu,s2.b.1.all\n"
    "mean1 <s2.twice\n"};

static void list(const ms_model *model, ms_text *lines)
{
    for (uint32_t l = 0; l < model->n_layers; l++) {
        const ms_layer *layer = &model->layers[l];
        ms_text_add(lines, "%s ", layer->name);
        for (uint32_t i = 0; i < layer->n_in; i++) {
            uint32_t from = model->edges[layer->in_at + i];
            ms_text_add(lines, "%s%s", i == 0 ? "<" : ",",
                        from == MS_NONE ? "input" : model->layers[from].name);
        }
        ms_text_add(lines, "\n");
    }
}

START_TEST(groups_are_unrolled)
{
    for (int deep = 0; deep < 2; deep++) {
        const ms_override set = {"deep", deep ? "1" : "0"};
        ms_arena arena = {0};
        ms_fault fault = {0};
        ms_model model;
        ms_text lines = {.arena = &arena};
        ck_assert_int_eq(ms_read_model_bytes("t", text, strlen(text), &set, 1,
                                             &arena, &model, &fault),
                         MS_OK);
        list(&model, &lines);
        ck_assert_str_eq(lines.bytes, wanted[deep]);
        ck_assert_uint_eq(model.n_blocks, 3); /* "each" makes none */
        ck_assert_str_eq(model.block_names[2], "s2.b.1");
        ms_arena_free(&arena);
    }
}
END_TEST

START_TEST(out_of_memory_is_reported)
{
    ms_err err = MS_ENOMEM;
    for (long i = 1; err != MS_OK; i++) {
        ms_arena arena = {0};
        ms_fault fault = {0};
        ms_model model;
        ms_arena_fail_after(i);
        err = ms_read_model_bytes("t", text, strlen(text), NULL, 0, &arena,
                                  &model, &fault);
        ms_arena_fail_after(0);
        ck_assert(err == MS_OK || err == MS_ENOMEM);
        ms_arena_free(&arena);
    }
}
END_TEST

Suite *suite_numbers(void)
{
    Suite *suite = suite_create("numbers");
    TCase *tcase = tcase_create("numbers");
    tcase_add_loop_test(tcase, has_the_value, 0,
                        sizeof values / sizeof *values);
    tcase_add_loop_test(tcase, refuses, 0, sizeof refused / sizeof *refused);
    tcase_add_test(tcase, is_bounded);
    tcase_add_test(tcase, fills_names);
    tcase_add_test(tcase, groups_are_unrolled);
    tcase_add_test(tcase, out_of_memory_is_reported);
    suite_add_tcase(suite, tcase);
    return suite;
}
