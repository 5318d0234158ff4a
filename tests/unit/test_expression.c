/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Expressions in pages: their values, and what is wrong with them. */
#include "graphs/json/expression.h"
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
    ms_expression_node(from, row, value);
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
    {"7 / 2", 3},
    {"0 - 7 / 2", -3},
    {"(0 - 7) / 2", -4},
    {"7 % 4", 3},
    {"(0 - 7) % 4", 1},
    {"10 - 2 - 3", 5},
    {"h / n", 64},
    {"none ?? h / n", 64},
    {"zero ?? 5", 0},
    {"none ?? none ?? 9", 9},
    {"h * share", 192},
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
    {"h * 0.125 + 1", 97},
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

/* What is not asked for may be wrong. */
START_TEST(is_lazy)
{
    static const char *const texts[] = {
        "on ? 1 : 1 / zero", "n ?? missing", "on || missing ? 1 : 0",
        "!on && h / zero == 1 ? 0 : 1", "zero ?? (big + big)"};
    ms_known value;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ck_assert_msg(value_of(texts[i], &value) == MS_OK, "%s: %s", texts[i],
                      fault.what);
}
END_TEST

static const struct {
    const char *text, *where, *what;
} faults[] = {
    {"n +", "", "cannot read \"n +\" at \"\""},
    {"(n", "", "cannot read \"(n\" at \"\""},
    {"n n", "", "cannot read \"n n\" at \"n\""},
    {"'x", "", "cannot read \"'x\" at \"x\""},
    {"on ? 1", "", "cannot read \"on ? 1\" at \"\""},
    {"99999999999999999999", "", "cannot read"},
    {"missing", "", "no \"missing\""},
    {"h / zero", "c.json:1:43", "\"zero\" must not be 0"},
    {"h / (n - 12)", "", "a division by 0 in \"h / (n - 12)\""},
    {"big + 1", "c.json:2:39", "\"big + 1\" is beyond 2^63"},
    {"big * 2", "c.json:2:39", "\"big * 2\" is beyond 2^63"},
    {"big * share", "c.json:2:26", "\"share\" is out of range"},
    {"act * 2", "c.json:2:9", "\"act\" must be an integer, not a string"},
    {"none + 1", "c.json:1:29", "\"none\" must be an integer, not null"},
    {"act ? 1 : 2", "c.json:2:9", "\"act\" must be true or false"},
    {"act < 3", "c.json:2:9", "\"act\" must be a number, not a string"},
    {"!n", "c.json:1:7", "\"n\" must be true or false, not a number"},
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

Suite *suite_expression(void)
{
    Suite *suite = suite_create("expression");
    TCase *tcase = tcase_create("expression");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, gives_integers, 0,
                        sizeof integers / sizeof *integers);
    tcase_add_test(tcase, is_lazy);
    tcase_add_loop_test(tcase, says_what_is_wrong, 0,
                        sizeof faults / sizeof *faults);
    suite_add_tcase(suite, tcase);
    return suite;
}
