/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Texts: numbers, JSON strings, names and the nearest of them. */
#include "sim/base/base.h"
#include "sim/names.h"
#include "tests/tests.h"

#include <locale.h>
#include <math.h>
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

START_TEST(numbers)
{
    ms_text text = {.arena = &arena};
    ms_text_u64(&text, 0);
    ms_text_put(&text, " ", 1);
    ms_text_u64(&text, UINT64_MAX);
    ms_text_put(&text, " ", 1);
    ms_text_i64(&text, INT64_MIN);
    ms_text_put(&text, " ", 1);
    ms_text_i64(&text, 42);
    ms_text_add(&text, " %s", "end");
    ck_assert_str_eq(text.bytes,
                     "0 18446744073709551615 -9223372036854775808 42 end");
    ck_assert_uint_eq(text.length, strlen(text.bytes));
}
END_TEST

static const char *doubles(void)
{
    ms_text text = {.arena = &arena};
    const double values[] = {0.5, -1234567, 1e-9, 174604259328.0, 3.14159265};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        ms_text_double(&text, values[i]);
        ms_text_put(&text, " ", 1);
    }
    ms_text_double(&text, INFINITY);
    return text.bytes;
}

START_TEST(doubles_whatever_the_locale)
{
    static const char expected[] =
        "0.5 -1.23457e+06 1e-09 1.74604e+11 3.14159 null";
    ck_assert_str_eq(doubles(), expected);
    setlocale(LC_ALL, "de_DE.UTF-8"); /* where it is installed */
    ck_assert_str_eq(doubles(), expected);
    setlocale(LC_ALL, "C");
}
END_TEST

static const struct {
    const char *string, *json;
} strings[] = {
    {"plain 1/2", "\"plain 1/2\""},
    {"\"\\\b\f\n\r\t", "\"\\\"\\\\\\b\\f\\n\\r\\t\""},
    {"\x01\x1f\x7f", "\"\\u0001\\u001f\x7f\""},
    {"\xc3\xa4 \xe4\xb8\xad \xf0\x9f\x98\x80",
     "\"\xc3\xa4 \xe4\xb8\xad \xf0\x9f\x98\x80\""},
    {"a\xffz", "\"a\xef\xbf\xbdz\""},
    {"\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\""}, /* overlong */
    {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    {"\xf4\x90\x80\x80",
     "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    {"cut \xe4\xb8", "\"cut \xef\xbf\xbd\xef\xbf\xbd\""},
};

START_TEST(json_strings)
{
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
        ms_text text = {.arena = &arena};
        ms_text_json(&text, strings[i].string);
        ck_assert_str_eq(text.bytes, strings[i].json);
    }
}
END_TEST

START_TEST(out_of_memory_is_told_once)
{
    arena.limit_bytes = 100;
    ms_text text = {.arena = &arena};
    for (int i = 0; i < 100; i++)
        ms_text_add(&text, "%d ", i);
    ck_assert(text.failed);
    ms_text_put(&text, "x", 1);
    ms_text_json(&text, "x");
    ck_assert(text.failed);
    ck_assert_int_eq(strncmp(text.bytes, "0 1 2 3 ", 8), 0);
}
END_TEST

START_TEST(every_name_is_there)
{
    for (int i = 0; i < MS_N_CATEGORIES; i++)
        ck_assert_ptr_nonnull(ms_names_category[i]);
    for (int i = 0; i < MS_N_PASSES; i++) {
        ck_assert_ptr_nonnull(ms_names_pass[i]);
        ck_assert_int_lt(ms_names_phase_of((ms_pass)i), MS_N_PHASES);
    }
    for (int i = 0; i < MS_N_PHASES; i++)
        ck_assert_ptr_nonnull(ms_names_phase[i]);
    for (int i = 0; i < MS_N_PLACES; i++)
        ck_assert_ptr_nonnull(ms_names_place[i]);
    for (int i = 0; i < MS_N_POOLS; i++)
        ck_assert_ptr_nonnull(ms_names_pool[i]);
    for (int i = 0; i < MS_N_STREAMS; i++)
        ck_assert_ptr_nonnull(ms_names_stream[i]);
    for (int i = 0; i < MS_N_MARKS; i++)
        ck_assert_ptr_nonnull(ms_names_mark[i]);
    ck_assert_int_eq(ms_names_phase_of(MS_RECOMPUTE), MS_PHASE_BACKWARD);
    ck_assert_int_eq(ms_names_phase_of(MS_STEP), MS_PHASE_OPTIMIZER);
}
END_TEST

START_TEST(nearest_names)
{
    static const char *const words[] = {"hidden", "heads", "sqrt", "full"};
    static char mile[1000];
    memset(mile, 'a', sizeof mile - 1);
    ck_assert_str_eq(ms_names_nearest("hiden", words, 4), "hidden");
    ck_assert_str_eq(ms_names_nearest("hdiden", words, 4), "hidden");
    ck_assert_str_eq(ms_names_nearest("sqrd", words, 4), "sqrt");
    ck_assert_str_eq(ms_names_nearest("sqtr", words, 4), "sqrt");
    ck_assert_str_eq(ms_names_nearest("sqroot", words, 4), "sqrt");
    ck_assert_ptr_null(ms_names_nearest("sqdd", words, 4));
    ck_assert_ptr_null(ms_names_nearest("bananas", words, 4));
    ck_assert_ptr_null(ms_names_nearest(mile, words, 4));
    ck_assert_ptr_null(ms_names_nearest("", words, 4));
}
END_TEST

Suite *suite_text(void)
{
    Suite *suite = suite_create("text");
    TCase *tcase = tcase_create("text");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, numbers);
    tcase_add_test(tcase, doubles_whatever_the_locale);
    tcase_add_test(tcase, json_strings);
    tcase_add_test(tcase, out_of_memory_is_told_once);
    tcase_add_test(tcase, every_name_is_there);
    tcase_add_test(tcase, nearest_names);
    suite_add_tcase(suite, tcase);
    return suite;
}
