/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The JSON reader: what it refuses, places, numbers and strings. */
#include "graphs/json/json.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
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

static ms_json read_text(const char *text)
{
    ms_json json;
    ms_err err =
        ms_json_read("t.json", text, strlen(text), &arena, &json, &fault);
    ck_assert_msg(err == MS_OK, "%s: %s", fault.where, fault.what);
    return json;
}

/* What is refused, where, and a part of what is said. */
static const struct {
    const char *text, *where, *what;
} refused[] = {
    {"", "1:1", "empty"},
    {"  \n ", "1:1", "empty"},
    {"\xEF\xBB\xBF{}", "1:1", "byte order mark"},
    {"{} x", "1:4", "after the end"},
    {"{}{}", "1:3", "after the end"},
    {"[1,]", "1:3", "comma before"},
    {"{\"a\":1,}", "1:7", "comma before"},
    {"[,]", "1:2", "expected a value"},
    {"[1 2]", "1:4", "',' or ']'"},
    {"{\"a\" 1}", "1:6", "':'"},
    {"{a:1}", "1:2", "a key in double quotes"},
    {"{'a':1}", "1:2", "a key in double quotes"},
    {"[", "1:2", "the text ends"},
    {"{\"a\":", "1:6", "the text ends"},
    {"[007]", "1:2", "leading zero"},
    {"[-01]", "1:2", "leading zero"},
    {"[1.]", "1:4", "digit after the decimal point"},
    {"[.5]", "1:2", "expected a value"},
    {"[+1]", "1:2", "expected a value"},
    {"[1e]", "1:4", "exponent"},
    {"[-]", "1:3", "a digit"},
    {"[0x10]", "1:3", "',' or ']'"},
    {"[NaN]", "1:2", "expected a value"},
    {"[Infinity]", "1:2", "expected a value"},
    {"[-Infinity]", "1:3", "a digit"},
    {"[True]", "1:2", "expected a value"},
    {"[nul]", "1:2", "expected a value"},
    {"[1e400]", "1:2", "range of a double"},
    {"[9223372036854775808]", "1:2", "64 bits"},
    {"[-9223372036854775809]", "1:2", "64 bits"},
    {"[\"a\nb\"]", "1:4", "control character"},
    {"[\"a\tb\"]", "1:4", "control character"},
    {"[\"abc]", "1:2", "not closed"},
    {"[\"\\x\"]", "1:3", "escape"},
    {"[\"\\u12g4\"]", "1:3", "four hexadecimal"},
    {"[\"\\u0000\"]", "1:3", "\\u0000"},
    {"[\"\\ud800\"]", "1:3", "surrogate"},
    {"[\"\\udc00\"]", "1:3", "surrogate"},
    {"[\"\\ud800\\u0041\"]", "1:3", "surrogate"},
    {"[\"\xFF\"]", "1:3", "not UTF-8"},
    {"[\"\xC0\x80\"]", "1:3", "not UTF-8"},
    {"[\"\xED\xA0\x80\"]", "1:3", "not UTF-8"},
    {"[\"\xF4\x90\x80\x80\"]", "1:3", "not UTF-8"},
    {"[\"\xE2\x82\"]", "1:3", "not UTF-8"},
    {"{\"a\":1,\n \"a\":2}", "2:2", "duplicate key \"a\""},
    {"{\"a\":1, \"\\u0061\":2}", "1:9", "duplicate key \"a\""},
    {"// x\n{}", "1:1", "expected a value"},
    {"[\"\xC3\xA9\", 1.]", "1:9", "decimal point"},
};

START_TEST(refuses)
{
    ms_json json;
    const char *text = refused[_i].text;
    char where[64];
    ms_err err =
        ms_json_read("t.json", text, strlen(text), &arena, &json, &fault);
    ck_assert_msg(err == MS_EINPUT, "%s", text);
    snprintf(where, sizeof where, "t.json:%s", refused[_i].where);
    ck_assert_str_eq(fault.where, where);
    ck_assert_msg(strstr(fault.what, refused[_i].what) != NULL, "%s: %s", text,
                  fault.what);
}
END_TEST

START_TEST(caret_stands_under_the_character)
{
    ms_json json;
    const char *text = "{\"\xC3\xA9\": 1,\n  \"x\": 007}";
    ms_json_read("t.json", text, strlen(text), &arena, &json, &fault);
    ck_assert_str_eq(fault.where, "t.json:2:8");
    ck_assert_str_eq(fault.source, "  \"x\": 007}");
    ck_assert_int_eq(fault.caret, 7);
    ck_assert_str_ne(fault.hint, "");
}
END_TEST

START_TEST(nodes_know_their_place)
{
    ms_json json = read_text("{\n  \"a\": [1, \"\xC3\xA9\", null],\n"
                             "  \"b\": {\"c\": true}\n}");
    ck_assert_uint_eq(json.n, 7);
    const ms_json_node *n = json.nodes;
    ck_assert_uint_eq(n[0].value.n, 2);
    ck_assert_uint_eq(n[1].line, 2);
    ck_assert_uint_eq(n[1].column, 8);
    ck_assert_uint_eq(n[1].next, 5);
    ck_assert_uint_eq(n[4].column, 17); /* after a two-byte character */
    ck_assert_uint_eq(n[4].kind, MS_JSON_NULL);
    ck_assert_str_eq(n[6].key, "c");
    ck_assert_uint_eq(n[6].line, 3);
    ck_assert(n[6].value.b);
    ck_assert_uint_eq(ms_json_find(&json, 0, "b"), 5);
    ck_assert_uint_eq(ms_json_find(&json, 0, "z"), MS_NONE);
    ck_assert_uint_eq(ms_json_first(&json, 0), 1);
    ck_assert_uint_eq(ms_json_first(&json, 6), MS_NONE);
}
END_TEST

START_TEST(integers_are_exact)
{
    ms_json json = read_text("[9223372036854775807, -9223372036854775808, "
                             "9007199254740993, 0, -0, 1.5, 1e3]");
    const ms_json_node *n = json.nodes;
    ck_assert_int_eq(n[1].value.i, INT64_MAX);
    ck_assert_int_eq(n[2].value.i, INT64_MIN);
    ck_assert_int_eq(n[3].value.i, 9007199254740993);
    ck_assert_int_eq(n[5].value.i, 0);
    ck_assert_uint_eq(n[6].kind, MS_JSON_FLOAT);
    ck_assert_double_eq(n[6].value.f, 1.5);
    ck_assert_double_eq(n[7].value.f, 1000);
}
END_TEST

START_TEST(strings_are_decoded)
{
    ms_json json = read_text("[\"\\u00e9\\n\\ud83d\\ude00\\\"\", \"\"]");
    ck_assert_str_eq(json.nodes[1].value.s, "\xC3\xA9\n\xF0\x9F\x98\x80\"");
    ck_assert_str_eq(json.nodes[2].value.s, "");
}
END_TEST

START_TEST(a_number_at_the_end_is_not_overread)
{
    const char *text = "123456";
    ms_json json;
    char *exact = ms_arena_text(&arena, text, 3);
    ck_assert_int_eq(ms_json_read("t", exact, 3, &arena, &json, &fault), MS_OK);
    ck_assert_int_eq(json.nodes[0].value.i, 123);
}
END_TEST

START_TEST(nesting_has_a_limit)
{
    ms_json json;
    char text[200];
    for (int depth = 64; depth <= 65; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        ms_err err =
            ms_json_read("t", text, 2 * (size_t)depth, &arena, &json, &fault);
        ck_assert_int_eq(err, depth == 64 ? MS_OK : MS_EINPUT);
    }
    ck_assert_str_eq(fault.where, "t:1:65");
}
END_TEST

START_TEST(duplicates_among_many_keys_are_found)
{
    ms_text text = {.arena = &arena};
    ms_json json;
    ms_text_add(&text, "{");
    for (int i = 0; i < 20000; i++)
        ms_text_add(&text, "\"k%d\":%d,", i, i);
    ms_text_add(&text, "\"k777\":1}");
    ms_err err =
        ms_json_read("t", text.bytes, text.length, &arena, &json, &fault);
    ck_assert_int_eq(err, MS_EINPUT);
    ck_assert_ptr_nonnull(strstr(fault.what, "duplicate key \"k777\""));
}
END_TEST

static const char folded_text[] =
    "{\"rows\": [[1, \"a\\n\"],\n [2, [3], {}]],\n"
    " \"\xC3\xA9\": {\"k\": [true]}}";

START_TEST(rows_of_lists_may_be_folded)
{
    ms_json json, part;
    ms_arena scratch = {0};
    ck_assert_int_eq(ms_json_outline("t", folded_text, strlen(folded_text), 2,
                                     &arena, &json, &fault),
                     MS_OK);
    ck_assert_uint_eq(json.n, 6);
    ck_assert_uint_eq(json.nodes[1].value.n, 2);
    ck_assert_uint_eq(ms_json_first(&json, 2), MS_NONE);
    uint32_t row = 3;
    ck_assert_uint_eq(json.nodes[row].value.n, 3);
    ck_assert_int_eq(ms_json_unfold(&json, &row, &scratch, &part, &fault),
                     MS_OK);
    ck_assert_uint_eq(row, 0);
    ck_assert_uint_eq(part.n, 5);
    ck_assert_uint_eq(part.nodes[0].line, 2);
    ck_assert_uint_eq(part.nodes[0].column, 2);
    ck_assert_uint_eq(part.nodes[2].column, 6);
    ck_assert_int_eq(part.nodes[3].value.i, 3);
    ms_json_fail(&part, 4, &fault, NULL, "here");
    ck_assert_str_eq(fault.where, "t:2:11");
    ms_arena_free(&scratch);
}
END_TEST

START_TEST(what_is_folded_is_checked_all_the_same)
{
    static const struct {
        const char *text, *where;
    } rows[] = {
        {"[[{\"a\":1,\"a\":2}]]", "t:1:10"},
        {"[[{\"a\":1,\"a\":2}],]", "t:1:17"}, /* that first */
        {"[[[1e999]]]", "t:1:4"},
        {"[[[1e999]]] x", "t:1:13"},
        {"[[[\"\\x\"]]]", "t:1:5"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ms_json json;
        ms_fault whole = {0}, folded = {0};
        const char *text = rows[i].text;
        ms_json_read("t", text, strlen(text), &arena, &json, &whole);
        ms_json_outline("t", text, strlen(text), 1, &arena, &json, &folded);
        ck_assert_str_eq(whole.where, rows[i].where);
        ck_assert_str_eq(folded.where, rows[i].where);
        ck_assert_str_eq(folded.what, whole.what);
    }
}
END_TEST

START_TEST(equal_keys_are_one)
{
    ms_json json = read_text("[{\"ab\": 1}, {\"\\u0061b\": 2}]");
    ck_assert_ptr_eq(json.nodes[2].key, json.nodes[4].key);
}
END_TEST

START_TEST(out_of_memory_is_reported)
{
    const char *text = "{\"a\": [1, 2, {\"b\": \"text\"}], \"c\": null}";
    ms_json json;
    ms_err err = MS_ENOMEM;
    long n = 0;
    while (err != MS_OK) {
        ms_arena small = {0};
        ms_fault why = {0};
        ms_arena_fail_after(++n);
        err = ms_json_read("t", text, strlen(text), &small, &json, &why);
        ms_arena_fail_after(0);
        ck_assert(err == MS_OK || err == MS_ENOMEM);
        ck_assert_int_eq(err, why.err);
        ms_arena_free(&small);
    }
    ck_assert_int_gt(n, 1);
}
END_TEST

Suite *suite_json(void)
{
    Suite *suite = suite_create("json");
    TCase *tcase = tcase_create("json");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, refuses, 0,
                        (int)(sizeof refused / sizeof *refused));
    tcase_add_test(tcase, caret_stands_under_the_character);
    tcase_add_test(tcase, nodes_know_their_place);
    tcase_add_test(tcase, integers_are_exact);
    tcase_add_test(tcase, strings_are_decoded);
    tcase_add_test(tcase, a_number_at_the_end_is_not_overread);
    tcase_add_test(tcase, nesting_has_a_limit);
    tcase_add_test(tcase, duplicates_among_many_keys_are_found);
    tcase_add_test(tcase, rows_of_lists_may_be_folded);
    tcase_add_test(tcase, what_is_folded_is_checked_all_the_same);
    tcase_add_test(tcase, equal_keys_are_one);
    tcase_add_test(tcase, out_of_memory_is_reported);
    suite_add_tcase(suite, tcase);
    return suite;
}
