/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Expressions in pages: their values, and what is wrong with them. */
#include "graphs/json/expression.h"
#include "graphs/json/numbers.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"

#include <string.h>

static ms_arena arena;
static ms_fault fault;
static ms_json json;

/* Names are the members of an object. */
static ms_err find(void *scope, const char *name, ms_known *value)
{
    const ms_json *from = scope;
    uint32_t row = ms_json_find(from, 0, name);
    if (row == MS_NONE)
        return ms_fail(&fault, MS_EINPUT, NULL, NULL, "no \"%s\"", name);
    ms_known_node(from, row, value);
    return MS_OK;
}

static ms_err value_of(const char *text, ms_known *value)
{
    const ms_names names = {find, &json, &arena, &fault};
    fault = (ms_fault){0};
    return ms_expression_value(text, &names, value);
}

static const char config[] =
    "{\"n\": 12, \"h\": 768, \"none\": null, \"zero\": 0, \"on\": true,\n"
    " \"act\": \"silu\", \"share\": 0.25, \"big\": 9223372036854775807,\n"
    " \"types\": [\"full\", \"sliding\"], \"at\": [0, 5]}";

static void set_up(void)
{
    arena = (ms_arena){0};
    ck_assert_int_eq(
        ms_json_read("c.json", config, strlen(config), &arena, &json, &fault),
        MS_OK);
}

static void tear_down(void)
{
    ms_arena_free(&arena);
}

static const struct {
    const char *text;
    int64_t value;
} integers[] = {
    {"12", 12},
    {" 2 + 3 * 4 ", 14},
    {"(2 + 3) * 4", 20},
    {"7 // 2", 3},
    {"-7 // 2", -4},
    {"7 // -2", -4},
    {"-(7 // 2)", -3},
    {"7 % 4", 3},
    {"-7 % 4", 1},
    {"7 % -4", -1},
    {"7 // -1 + 7 % -1", -7},
    {"6 / 2", 3},
    {"--n", 12},
    {"floor(7 / 2)", 3},
    {"floor(-3.5)", -4},
    {"floor(h * share + 0.9)", 192},
    {"min(n, 4) * max(1, n)", 48},
    {"max(1, min(2, h))", 2},
    {"on + on", 2},
    {"on == 1 ? 1 : 0", 1},
    {"n ? 1 : 0", 1},
    {"!zero && share ? 1 : 0", 1},
    {"(n && h) == 1 ? 1 : 0", 1},
    {"'full' in types ? 1 : 0", 1},
    {"'' == 'full' ? 1 : 0", 0},
    {"1+2*3==7?1:0", 1},
    {"10 - 2 - 3", 5},
    {"h / n", 64},
    {"none ?? h / n", 64},
    {"zero ?? 5", 0},
    {"none ?? none ?? 9", 9},
    {"on ? 1 : 2", 1},
    {"!on ? 1 : on && n > 3 ? 3 : 4", 3},
    {"on || none ? 1 : 2", 1},
    {"n == 12 && h != 12 ? n : 0", 12},
    {"n <= 12 && n >= 12 && !(n < 12) && !(n > 12) ? 1 : 0", 1},
    {"none == null ? 1 : 0", 1},
    {"zero == null ? 1 : 0", 0},
    {"5 in at && !(4 in at) ? 1 : 0", 1},
    {"types[1] == 'sliding' ? 1 : 0", 1},
    {"types[n - 12] == 'full' ? 1 : 0", 1},
    {"share < 1 && share > 0 ? 1 : 0", 1},
    {"share == 0.25 ? 1 : 0", 1},
};

START_TEST(gives_integers)
{
    ms_known value;
    ms_err err = value_of(integers[_i].text, &value);
    ck_assert_msg(err == MS_OK, "%s: %s", integers[_i].text, fault.what);
    ck_assert_int_eq(value.kind, MS_KIND_INT);
    ck_assert_int_eq(value.is.i, integers[_i].value);
}
END_TEST

static const struct {
    const char *text;
    double value;
} floats[] = {
    {"7 / 2", 3.5},          {"n / 8 * 2", 3},    {"h * share", 192},
    {"h * 0.125 + 1", 97},   {"-share", -0.25},   {".5 + 1.", 1.5},
    {"7.5 // 2", 3},         {"-0.5 % 2", 1.5},   {"share + on", 1.25},
    {"max(share, 0)", 0.25}, {"12 / 5 / 2", 1.2},
};

START_TEST(gives_floats)
{
    ms_known value;
    ms_err err = value_of(floats[_i].text, &value);
    ck_assert_msg(err == MS_OK, "%s: %s", floats[_i].text, fault.what);
    ck_assert_int_eq(value.kind, MS_KIND_FLOAT);
    ck_assert_double_eq(value.is.f, floats[_i].value);
}
END_TEST

START_TEST(gives_texts)
{
    ms_known value;
    ck_assert_int_eq(value_of("on ? 'a b' : act", &value), MS_OK);
    ck_assert_str_eq(value.is.s, "a b");
    ck_assert_int_eq(value_of("!on ? 'a b' : act", &value), MS_OK);
    ck_assert_str_eq(value.is.s, "silu");
    ck_assert_int_eq(value_of("''", &value), MS_OK);
    ck_assert_str_eq(value.is.s, "");
    ck_assert(value_of("none", &value) == MS_OK && value.kind == MS_KIND_NULL);
}
END_TEST

START_TEST(asks_for_a_kind)
{
    const ms_names names = {find, &json, &arena, &fault};
    int64_t whole;
    bool holds;
    fault = (ms_fault){0};
    ck_assert_int_eq(ms_expression_truth("h", &names, &holds), MS_OK);
    ck_assert(holds);
    ck_assert_int_eq(ms_expression_integer("7 / 2 * 2", &names, 7, &whole),
                     MS_OK);
    ck_assert_int_eq(whole, 7);
    ck_assert_int_eq(ms_expression_integer("7 / 2", &names, 0, &whole),
                     MS_EINPUT);
    ck_assert_str_eq(fault.what, "cannot compute \"7 / 2\": an integer is "
                                 "needed, not a number");
    fault = (ms_fault){0};
    ck_assert_int_eq(ms_expression_integer("n", &names, 13, &whole), MS_EINPUT);
    ck_assert_str_eq(fault.what, "\"n\" must be at least 13");
}
END_TEST

/* What is not asked for may be wrong. */
START_TEST(is_lazy)
{
    static const char *const texts[] = {
        "on ? 1 : 1 / zero",
        "n ?? missing",
        "on || missing ? 1 : 0",
        "!on && h / zero == 1 ? 0 : 1",
        "zero ?? (big + big)",
        "on ? 1 : -act + floor(act) + min(act, 1)",
        "on ? 1 : !act",
        "on ? 1 : act ? 1 : 2",
        "on || zero && act[0] in n ? 1 : 2"};
    ms_known value;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ck_assert_msg(value_of(texts[i], &value) == MS_OK, "%s: %s", texts[i],
                      fault.what);
}
END_TEST

static const struct {
    const char *text, *where, *what;
} faults[] = {
    {"n +", "", "cannot compute \"n +\": a value is missing"},
    {"", "", "a value is missing"},
    {"(n", "", "cannot compute \"(n\": a ) is missing"},
    {"n n", "", "cannot compute \"n n\": \"n\" is left over"},
    {"1 = 2", "", "is left over"},
    {"1 == 2 == 0", "", "\"== 0\" is left over"},
    {"1 == 2 && 1 < 2 < 3", "", "\"< 3\" is left over"},
    {"'x", "", "a ' is missing"},
    {"types[1", "", "a ] is missing"},
    {"on ? 1", "", "cannot compute \"on ? 1\": a : is missing"},
    {"1.2.3", "", "\"1.2.3\" is no number"},
    {"99999999999999999999", "", "is beyond 2^63"},
    {"sin(1)", "", "there is no function \"sin\""},
    {"max(1)", "", "max needs two values"},
    {"floor(big * 2.5)", "", "is beyond 2^53"},
    {"0 % 0", "", "cannot compute \"0 % 0\": a division by 0"},
    {"1 + 'a'", "", "a number is needed, not a string"},
    {"'a' || on", "", "true or false is needed, not a string"},
    {"on && none", "c.json:1:29", "\"none\" must be true or false, not null"},
    {"9223372036854775807 + 1", "", "it is beyond 2^63"},
    {"missing", "", "no \"missing\""},
    {"h / zero", "c.json:1:43", "\"zero\" must not be 0"},
    {"h / (n - 12)", "", "cannot compute \"h / (n - 12)\": a division by 0"},
    {"big + 1", "c.json:2:39", "\"big + 1\" is beyond 2^63"},
    {"big * 2", "c.json:2:39", "\"big * 2\" is beyond 2^63"},
    {"act * 2", "c.json:2:9", "\"act\" must be a number, not a string"},
    {"none + 1", "c.json:1:29", "\"none\" must be a number, not null"},
    {"act ? 1 : 2", "c.json:2:9", "\"act\" must be true or false"},
    {"act < 3", "c.json:2:9", "\"act\" must be a number, not a string"},
    {"!act", "c.json:2:9", "\"act\" must be true or false, not a string"},
    {"n[0]", "c.json:1:7", "\"n\" must be a list, not a number"},
    {"types[2]", "c.json:3:11", "\"types\" has no element 2"},
    {"types[act]", "c.json:2:9", "\"act\" must be an integer"},
    {"n in h", "c.json:1:16", "\"h\" must be a list, not a number"},
};

START_TEST(says_what_is_wrong)
{
    ms_known value;
    ms_err err = value_of(faults[_i].text, &value);
    ck_assert_msg(err == MS_EINPUT, "%s", faults[_i].text);
    ck_assert_msg(strstr(fault.what, faults[_i].what) != NULL, "%s: %s",
                  faults[_i].text, fault.what);
    ck_assert_str_eq(fault.where, faults[_i].where);
}
END_TEST

/* ---- of native files ----------------------------------------------------- */

static const ms_variable six = {"n", 6, NULL}, width = {"width", 0.5, &six};

static const struct {
    const char *text;
    double value;
} numbers[] = {
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
    {"n == 6 || missing", 1},
    {"2 && 3", 1},
    {"min(n, 4) * max(1, n)", 24},
    {"floor(n / 4)", 1},
    {"'a' == 'a'", 1},
};

START_TEST(gives_numbers)
{
    ms_fault why;
    double value;
    ms_err err = ms_numbers_value(numbers[_i].text, &width, &value, &why);
    ck_assert_msg(err == MS_OK, "%s: %s", numbers[_i].text, why.what);
    ck_assert_double_eq(value, numbers[_i].value);
}
END_TEST

static const struct {
    const char *text, *what, *hint;
} refused[] = {
    {"", "a value is missing", ""},
    {"1 2", "\"2\" is left over", ""},
    {"depth", "there is no value \"depth\"", "names: width, n"},
    {"widht", "there is no value \"widht\"", "did you mean \"width\"?"},
    {"sin(1)", "there is no function \"sin\"",
     "min, max and floor can be called"},
    {"1 / 0", "a division by 0", ""},
    {"1 / (n - 6)", "a division by 0", ""},
    {"n / 4", "it is 1.5, no whole number",
     "floor(x) is the whole number below x"},
    {"9007199254740994", "it is 9.0072e+15, no whole number",
     "floor(x) is the whole number below x"},
    {"null", "a number is needed, not null", ""},
    {"'a'", "a number is needed, not a string", ""},
};

START_TEST(refuses_numbers)
{
    ms_fault why;
    int64_t value;
    ck_assert_int_eq(ms_numbers_integer(refused[_i].text, &width, &value, &why),
                     MS_EINPUT);
    ck_assert_str_eq(why.what, refused[_i].what);
    ck_assert_str_eq(why.hint, refused[_i].hint);
}
END_TEST

START_TEST(is_bounded)
{
    ms_fault why;
    double value;
    char deep[201], text[300];
    memset(deep, '(', 200);
    deep[200] = '\0';
    ck_assert(ms_numbers_value(deep, NULL, &value, &why) == MS_EINPUT);
    ck_assert_str_eq(why.what, "it nests more than 64 deep");
    memset(deep, '-', 200);
    ck_assert(ms_numbers_value(deep, NULL, &value, &why) == MS_EINPUT);
    ck_assert_str_eq(why.what, "it nests more than 64 deep");
    memset(text, '1', 299);
    text[299] = '\0';
    ck_assert(ms_numbers_value(text, NULL, &value, &why) == MS_EINPUT);
    ck_assert_str_eq(why.what, "more than 256 bytes");
}
END_TEST

static bool fill(const char *text, size_t size, char *buffer)
{
    ms_fault why;
    return ms_numbers_fill(text, &width, buffer, size, &why) == MS_OK;
}

START_TEST(fills_names)
{
    char buffer[16];
    ck_assert(fill("a{n - 1}.{n}", 16, buffer));
    ck_assert_str_eq(buffer, "a5.6");
    ck_assert(!fill("a{width}", 16, buffer));
    ck_assert(!fill("a{n", 16, buffer));
    ck_assert(!fill("abcdefg{n}", 8, buffer));
    ck_assert(!fill("abcdefgh", 8, buffer));
}
END_TEST

Suite *suite_expression(void)
{
    Suite *suite = suite_create("expression");
    TCase *tcase = tcase_create("expression");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, gives_integers, 0,
                        sizeof integers / sizeof *integers);
    tcase_add_loop_test(tcase, gives_floats, 0, sizeof floats / sizeof *floats);
    tcase_add_test(tcase, gives_texts);
    tcase_add_test(tcase, asks_for_a_kind);
    tcase_add_test(tcase, is_lazy);
    tcase_add_loop_test(tcase, says_what_is_wrong, 0,
                        sizeof faults / sizeof *faults);
    tcase_add_loop_test(tcase, gives_numbers, 0,
                        sizeof numbers / sizeof *numbers);
    tcase_add_loop_test(tcase, refuses_numbers, 0,
                        sizeof refused / sizeof *refused);
    tcase_add_test(tcase, is_bounded);
    tcase_add_test(tcase, fills_names);
    suite_add_tcase(suite, tcase);
    return suite;
}
