/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Laws of signs and lines of text: a colour follows from a spelling, and no
 * spelling is cut. */
#include "plots/axes/frame.h"
#include "plots/gnuplot/canvas.h"
#include "plots/gnuplot/escape.h"
#include "plots/gnuplot/wrap.h"
#include "tests/tests.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static ms_arena arena;

static void teardown(void)
{
    ms_arena_free(&arena);
}

/* ---- signs --------------------------------------------------------------- */

static const ms_sign_name names[] = {
    {"no policy", "none"},
    {"checkpoint", "checkpoint:full"},
    {"checkpoint", "checkpoint:sqrt"},
    {"checkpoint", "checkpoint:every=2"},
    {"zero", "zero:3,dp=64"},
    {"zero + checkpoint", "zero:3,dp=64+checkpoint:full"},
    {"zero + swap", "zero:3,dp=64+swap:te=84"},
    {"fsdp", "fsdp:dp=64"},
    {"fsdp + checkpoint", "fsdp:dp=64+checkpoint:full"},
    {"dtr", "dtr"},
    {"uvm", "uvm"},
    {"microbatch", "microbatch:2"}};
#define N_NAMES ((uint32_t)(sizeof names / sizeof *names))

static bool are_equal(const ms_sign *a, const ms_sign *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

START_TEST(order_does_not_matter)
{
    ms_sign_name turned[N_NAMES];
    ms_sign signs[N_NAMES], again[N_NAMES];
    ms_marks_assign(names, N_NAMES, signs);
    for (uint32_t by = 0; by < N_NAMES; by++) {
        for (uint32_t i = 0; i < N_NAMES; i++)
            turned[i] = names[(i * 5 + by) % N_NAMES];
        ms_marks_assign(turned, N_NAMES, again);
        for (uint32_t i = 0; i < N_NAMES; i++)
            ck_assert(are_equal(&again[i], &signs[(i * 5 + by) % N_NAMES]));
    }
}
END_TEST

START_TEST(no_two_are_alike)
{
    ms_sign signs[N_NAMES];
    ms_marks_assign(names, N_NAMES, signs);
    for (uint32_t i = 0; i < N_NAMES; i++)
        for (uint32_t j = 0; j < i; j++) {
            bool family = strcmp(names[i].family, names[j].family) == 0;
            ck_assert(!are_equal(&signs[i], &signs[j]));
            ck_assert(!family || signs[i].hue == signs[j].hue);
            ck_assert_str_ne(ms_marks_color(&signs[i]),
                             ms_marks_color(&signs[j]));
        }
}
END_TEST

/* Whatever else a figure has. */
START_TEST(known_families_keep_their_hue)
{
    ms_sign all[N_NAMES], pair[2];
    ms_marks_assign(names, N_NAMES, all);
    for (uint32_t i = 0; i < N_NAMES; i++) {
        const ms_sign_name two[] = {names[i], names[9]};
        bool is_known = strchr(names[i].family, '+') == NULL && i < 9;
        ms_marks_assign(two, 2, pair);
        ck_assert(!is_known || pair[0].hue == all[i].hue);
    }
}
END_TEST

/* ---- lines of text ------------------------------------------------------- */

static const char longest[] =
    "microbatch:4+fsdp:dp=512,shard=8,reshard=8+offload:optimizer/params/"
    "gradients,to=nvme,pin=true+swap:te=84,to=nvme+checkpoint:sqrt,by=bytes,"
    "blocks=layers.0.attention/layers.0.mlp/layers.1.attention/layers.1.mlp";

START_TEST(nothing_is_cut)
{
    for (double limit = 90.0; limit < 900.0; limit += 37.0) {
        char joined[sizeof longest] = "";
        uint32_t n;
        const char **lines =
            ms_wrap_lines(longest, 20.0, _i == 1, limit, &arena, &n);
        ck_assert_ptr_nonnull(lines);
        for (uint32_t i = 0; i < n; i++) {
            strcat(joined, lines[i]);
            ck_assert(i + 1 == MS_WRAP_MOST ||
                      ms_escape_width(lines[i], 20.0, _i == 1) <= limit);
        }
        ck_assert_str_eq(joined, longest);
        ck_assert(limit < 240.0 || n < MS_WRAP_MOST);
    }
}
END_TEST

START_TEST(words_are_broken_last)
{
    uint32_t n;
    const char **lines =
        ms_wrap_lines("one two", 20.0, false, 45.0, &arena, &n);
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(lines[0], "one");
    ck_assert_str_eq(lines[1], "two");
    lines = ms_wrap_lines("\u00e9\u00e9", 20.0, false, 1.0, &arena, &n);
    ck_assert_uint_eq(n, 2); /* whole characters, however narrow */
    ck_assert_str_eq(lines[0], "\u00e9");
    ms_wrap_lines("", 20.0, false, 45.0, &arena, &n);
    ck_assert_uint_eq(n, 0);
}
END_TEST

/* Lightness of a colour of the sRGB in grey (ITU-R BT.601), 0 to 255. */
static double grey_of(const char *color)
{
    unsigned long rgb = strtoul(color + 1, NULL, 16);
    return 0.299 * (double)(rgb >> 16) + 0.587 * (double)(rgb >> 8 & 255) +
           0.114 * (double)(rgb & 255);
}

/* Whatever lies on what for most of a step, in print without colours. */
START_TEST(neighbours_in_the_stack_differ_in_grey)
{
    static const ms_category pairs[][2] = {
        {MS_PARAMETERS, MS_OPTIMIZER_STATE},
        {MS_PARAMETERS, MS_ACTIVATIONS},
        {MS_OPTIMIZER_STATE, MS_GRADIENTS},
        {MS_OPTIMIZER_STATE, MS_ACTIVATIONS},
        {MS_OPTIMIZER_STATE, MS_TEMPORARIES},
        {MS_GRADIENTS, MS_ACTIVATIONS},
        {MS_GRADIENTS, MS_TEMPORARIES},
        {MS_ACTIVATIONS, MS_COMMUNICATION},
        {MS_ACTIVATIONS, MS_TEMPORARIES},
        {MS_COMMUNICATION, MS_TEMPORARIES},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        double lower = grey_of(ms_canvas_category_color[pairs[i][0]]);
        double upper = grey_of(ms_canvas_category_color[pairs[i][1]]);
        ck_assert_msg(fabs(lower - upper) >= 25.0, "%s, %s: %.0f, %.0f",
                      ms_names_category[pairs[i][0]],
                      ms_names_category[pairs[i][1]], lower, upper);
    }
}
END_TEST

Suite *suite_signs(void)
{
    Suite *suite = suite_create("signs");
    TCase *tcase = tcase_create("signs");
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, order_does_not_matter);
    tcase_add_test(tcase, no_two_are_alike);
    tcase_add_test(tcase, known_families_keep_their_hue);
    tcase_add_loop_test(tcase, nothing_is_cut, 0, 2);
    tcase_add_test(tcase, words_are_broken_last);
    tcase_add_test(tcase, neighbours_in_the_stack_differ_in_grey);
    suite_add_tcase(suite, tcase);
    return suite;
}
