/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pareto figures and curves: their scripts, read, and their pictures. */
#include "plots/axes/frame.h"
#include "plots/plots.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/unit/folder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define GIB (UINT64_C(1) << 30)
#define MS UINT64_C(1000000)
#define MOST 10000u

static ms_arena arena;
static ms_fault fault;
static char *script;
static ms_trade trades[MOST];
static uint32_t n;
static uint64_t usable_bytes;

static bool has_gnuplot(void)
{
    return system("command -v gnuplot > /dev/null") == 0;
}

static void setup(void)
{
    arena = (ms_arena){0};
    fault = (ms_fault){0};
    script = malloc(4u << 20);
    ck_assert_ptr_nonnull(script);
    folder_open();
    n = 0;
    usable_bytes = 0;
}

static void teardown(void)
{
    folder_close();
    ms_arena_free(&arena);
    free(script);
}

static void add(const char *name, uint64_t peak_gib, uint64_t step_ms)
{
    trades[n++] = (ms_trade){.name = name,
                             .family = name,
                             .peak_bytes = peak_gib * GIB,
                             .step_ns = step_ms * MS,
                             .fits = true};
}

static ms_err draw_trades(const ms_drawing *drawing)
{
    for (uint32_t i = 0; i < n && usable_bytes > 0; i++)
        trades[i].limit = (ms_limit){"d", usable_bytes, usable_bytes};
    return ms_figure_pareto(trades, n, drawing, &fault);
}

/* Draws and reads the script, whether or not gnuplot is there to run it. */
static void read_script(const ms_curves *curves)
{
    char path[TESTS_PATH], kept[TESTS_PATH];
    strcpy(path, folder_path("a.svg"));
    strcpy(kept, folder_path("a.gp"));
    ms_drawing drawing = {
        .title = "t", .path = path, .script_path = kept, .arena = &arena};
    ms_err err = curves != NULL ? ms_figure_curve(curves, &drawing, &fault)
                                : draw_trades(&drawing);
    ck_assert_msg(err == MS_OK || (err == MS_EPROGRAM && !has_gnuplot()), "%s",
                  fault.what);
    fault = (ms_fault){0};
    folder_read(kept, script, 4u << 20);
}

static void has(const char *part)
{
    ck_assert_msg(strstr(script, part) != NULL, "no %s in\n%.3000s", part,
                  script);
}

static void lacks(const char *part)
{
    ck_assert_msg(strstr(script, part) == NULL, "%s in\n%.3000s", part, script);
}

static uint32_t count(const char *part)
{
    uint32_t times = 0;
    for (const char *at = script; (at = strstr(at, part)) != NULL; at++)
        times++;
    return times;
}

/* Polygons in the blocks whose names begin so: an empty line ends each. */
static uint32_t count_signs(const char *name)
{
    char opening[64];
    uint32_t signs = 0;
    snprintf(opening, sizeof opening, "\n$%s_", name);
    const char *at = script;
    while ((at = strstr(at, opening)) != NULL) {
        const char *end = strstr(at, "\nEOD\n");
        ck_assert_ptr_nonnull(end);
        for (at++; at < end; at++)
            signs += at[0] == '\n' && at[1] == '\n';
    }
    return signs;
}

/* ---- what is optimal ----------------------------------------------------- */

START_TEST(nothing_beats_the_optimal)
{
    add("none", 10, 20);
    add("slower", 10, 21);
    add("smaller", 5, 30);
    add("both", 11, 31);
    read_script(NULL);
    ck_assert_uint_eq(count_signs("best"), 2);
    ck_assert_uint_eq(count_signs("beaten"), 2);
    has("'none'");
    has("'both'");
}
END_TEST

START_TEST(equal_ones_share_a_sign_and_a_name)
{
    add("none", 10, 20);
    add("idle", 10, 20);
    read_script(NULL);
    ck_assert_uint_eq(count_signs("best"), 1);
    has("'none = idle'");
    add("third", 10, 20);
    read_script(NULL);
    has("'none = 2 more'");
}
END_TEST

/* As the definition says it, trade by trade. */
static bool is_beaten(uint32_t i)
{
    for (uint32_t j = 0; j < n; j++)
        if (trades[j].peak_bytes <= trades[i].peak_bytes &&
            trades[j].step_ns <= trades[i].step_ns &&
            (trades[j].peak_bytes < trades[i].peak_bytes ||
             trades[j].step_ns < trades[i].step_ns))
            return true;
    return false;
}

static bool is_first(uint32_t i)
{
    for (uint32_t j = 0; j < i; j++)
        if (trades[j].peak_bytes == trades[i].peak_bytes &&
            trades[j].step_ns == trades[i].step_ns)
            return false;
    return true;
}

START_TEST(optimal_is_what_the_definition_says)
{
    uint32_t state = (uint32_t)_i * 2654435761u + 1, optimal = 0;
    for (uint32_t i = 0; i < 60; i++) {
        state = state * 1664525u + 1013904223u;
        add("a", 20 + (state >> 16) % 12, 20 + (state >> 24) % 12);
    }
    for (uint32_t i = 0; i < n; i++)
        optimal += !is_beaten(i) && is_first(i);
    read_script(NULL);
    ck_assert_uint_eq(count_signs("best"), optimal);
}
END_TEST

/* ---- capacity ------------------------------------------------------------ */

START_TEST(capacity_has_a_zone)
{
    add("none", 90, 20);
    add("full", 60, 25);
    usable_bytes = 80 * GIB;
    read_script(NULL);
    has("capacity 80 GiB: right of it nothing fits");
    usable_bytes = 500 * GIB;
    read_script(NULL);
    has("all below capacity 500 GiB");
    usable_bytes = 2 * GIB;
    read_script(NULL);
    has("all above capacity 2 GiB");
}
END_TEST

START_TEST(zone_without_capacity)
{
    add("none", 90, 20);
    add("full", 60, 25);
    trades[0].fits = false;
    read_script(NULL);
    has("from here on nothing fits");
    lacks("pale");
    add("small", 95, 40); /* of another device, where it fits */
    read_script(NULL);
    lacks("nothing fits");
    has("pale:");
    ck_assert_uint_eq(count_signs("pale_best"), 1);
}
END_TEST

/* ---- steps that differ in what they do ----------------------------------- */

/* Twice the batch in less than twice the time is better, though slower. */
START_TEST(work_that_differs_is_ranked_by_rate)
{
    add("batch 8", 10, 20);
    add("batch 16", 12, 30);
    trades[0].work = trades[1].work = 8192;
    trades[0].has_tokens = trades[1].has_tokens = true;
    read_script(NULL);
    has("step time (ms)");
    has("lower left is better");
    ck_assert_uint_eq(count_signs("best"), 1);
    trades[1].work = 16384;
    read_script(NULL);
    has("throughput (thousand tokens/s)");
    has("upper left is better");
    ck_assert_uint_eq(count_signs("best"), 2);
    trades[0].has_tokens = trades[1].has_tokens = false;
    read_script(NULL);
    has("throughput (thousand samples/s)");
}
END_TEST

START_TEST(the_choice_has_a_star)
{
    add("none", 10, 20);
    add("chosen one", 12, 30);
    read_script(NULL);
    lacks("$chosen");
    trades[1].is_chosen = true;
    read_script(NULL);
    has("$chosen << EOD");
    has("'chosen: chosen one'");
    has("star: chosen");
}
END_TEST

START_TEST(each_device_has_its_line)
{
    add("a", 10, 20);
    add("b", 12, 30);
    trades[0].limit = (ms_limit){"small", 12 * GIB, 11 * GIB};
    trades[1].limit = (ms_limit){"large", 14 * GIB, 13 * GIB};
    read_script(NULL);
    has("'small: capacity 12 GiB less context 1 GiB'");
    has("'large: capacity 14 GiB less context 1 GiB'");
    lacks("nothing fits");
    ck_assert_uint_eq(count("linewidth 1.6 linecolor rgb '#B3261E'"), 2);
}
END_TEST

/* ---- extremes ------------------------------------------------------------ */

START_TEST(one_trade_and_none)
{
    ms_drawing drawing = {.path = "a.svg", .arena = &arena};
    ck_assert_int_eq(ms_figure_pareto(trades, 0, &drawing, &fault), MS_EINPUT);
    fault = (ms_fault){0};
    add("", 0, 0);
    read_script(NULL);
    ck_assert_uint_eq(count_signs("best"), 1);
    trades[0].peak_bytes = trades[0].step_ns = UINT64_MAX;
    read_script(NULL);
    lacks("nan");
    lacks("inf");
}
END_TEST

START_TEST(thousands_are_thinned)
{
    static const char *const families[] = {"none", "checkpoint", "zero"};
    for (uint32_t i = 0; i < MOST; i++) {
        add(families[i % 3], 100, 0);
        trades[i].peak_bytes += i * 7919 % MOST * (GIB / 64);
        trades[i].step_ns = 20 * MS + i * 104729 % MOST * 1000;
    }
    clock_t start = clock();
    read_script(NULL);
    ck_assert_int_lt(clock() - start, 5 * CLOCKS_PER_SEC);
    has("10000 points");
    ck_assert_uint_lt(count_signs("beaten"), 8000);
    ck_assert_uint_gt(count_signs("beaten"), 100);
}
END_TEST

START_TEST(families_beyond_the_signs_are_others)
{
    char names[40][8];
    for (uint32_t i = 0; i < 40; i++) {
        snprintf(names[i], sizeof names[i], "f%u", i);
        add(names[i], 40 - i, 20 + i);
    }
    read_script(NULL);
    has("'other'");
    has("'f14'");
    ck_assert_uint_eq(count_signs("best"), 40);
}
END_TEST

static const char *const hostile[] = {
    "`touch PWNED`",
    "'; system('touch PWNED'); '",
    "x\nEOD\n!touch PWNED\nEOD\n",
    "\\'\nset output '|touch PWNED'\n",
    "a+b,c d \xff\xfe\x80 \x1b[31m ^{_a",
};
#define N_HOSTILE ((int)(sizeof hostile / sizeof hostile[0]))

/* Names lie within one pair of quotes, on a line of ours. */
static void check_lines(void)
{
    for (char *line = strtok(script, "\n"); line; line = strtok(NULL, "\n")) {
        uint32_t quotes = 0;
        for (const char *c = line; *c != '\0'; c++)
            quotes += *c == '\'';
        ck_assert_msg(quotes % 2 == 0, "%s", line);
        ck_assert_msg(line[0] != '!', "%s", line);
    }
}

START_TEST(names_can_hold_anything)
{
    double x[] = {0.0};
    uint64_t y[] = {GIB};
    const char *words[] = {hostile[_i]};
    ms_series series[] = {{hostile[_i], hostile[_i], 1, x, y, NULL},
                          {hostile[_i], hostile[_i], 1, x, y, NULL}};
    ms_curves curves = {.series = series,
                        .n = 2,
                        .x_name = hostile[_i],
                        .y_name = "y",
                        .x_words = words,
                        .n_words = 1};
    add(hostile[_i], 10, 20);
    add("b", 5, 30);
    trades[1].family = hostile[_i];
    read_script(NULL);
    check_lines();
    read_script(&curves);
    check_lines();
    ck_assert_int_ne(access("PWNED", F_OK), 0);
}
END_TEST

/* ---- curves -------------------------------------------------------------- */

static double xs[] = {1.0, 2.0, 4.0, 8.0};
static uint64_t ys[] = {GIB, 2 * GIB, MS_NO_LEVEL, 8 * GIB};
static bool fit[] = {true, true, false, false};

static ms_curves curves_of(const ms_series *series, uint32_t n_series)
{
    return (ms_curves){
        .series = series, .n = n_series, .x_name = "batch", .y_name = "peak"};
}

START_TEST(curve_has_gaps_and_hollow_signs)
{
    ms_series series[] = {{"none", "none", 4, xs, ys, fit}};
    ms_curves curves = curves_of(series, 1);
    read_script(&curves);
    ck_assert_uint_eq(count_signs("f"), 2);
    ck_assert_uint_eq(count_signs("h"), 1);
    has("hollow: does not fit; gaps: no result");
    has("'batch (log scale)'");
    has("'peak (GiB)'");
    lacks("'none'"); /* one line needs no name */
    const char *line = strstr(script, "$l_aa << EOD\n");
    ck_assert_ptr_nonnull(line);
    ck_assert_ptr_nonnull(strstr(line, "\n\n"));
}
END_TEST

START_TEST(curve_axis_follows_the_values)
{
    double linear[] = {1.0, 2.0, 3.0, 4.0};
    ms_series series[] = {{"a", "a", 4, linear, ys, NULL}};
    ms_curves curves = curves_of(series, 1);
    read_script(&curves);
    lacks("log scale");
    has("'batch'");
    has("'3'");
}
END_TEST

START_TEST(curve_capacity)
{
    ms_series series[] = {{"a", "a", 4, xs, ys, NULL},
                          {"b", "b", 2, xs, ys, NULL}};
    ms_curves curves = curves_of(series, 2);
    uint64_t usable[] = {6 * GIB, 5 * GIB};
    ms_series limit = {"capacity 7 GiB", NULL, 1, xs, usable, NULL};
    curves.limits = &limit;
    curves.n_limits = 1;
    read_script(&curves);
    has("'capacity 7 GiB'");
    has("'b'");
    limit.n = 2; /* it falls, and goes on to the border */
    read_script(&curves);
    ck_assert_uint_eq(count("linewidth 1.6 linecolor rgb '#B3261E'"), 3);
    limit.n = 1;
    limit.name = "capacity 700 GiB";
    usable[0] = 700 * GIB;
    read_script(&curves);
    has("all below capacity 700 GiB");
    curves.is_time = true;
    read_script(&curves);
    lacks("capacity");
}
END_TEST

START_TEST(curve_refuses)
{
    ms_series series[MS_CURVES_MOST + 1];
    uint64_t none[] = {MS_NO_LEVEL};
    ms_drawing drawing = {.path = "a.svg", .arena = &arena};
    for (uint32_t i = 0; i <= MS_CURVES_MOST; i++)
        series[i] = (ms_series){"a", "a", 1, xs, none, NULL};
    ms_curves curves = curves_of(series, MS_CURVES_MOST + 1);
    ck_assert_int_eq(ms_figure_curve(&curves, &drawing, &fault), MS_EINPUT);
    fault = (ms_fault){0};
    curves.n = 1;
    ck_assert_int_eq(ms_figure_curve(&curves, &drawing, &fault), MS_EINPUT);
}
END_TEST

/* ---- scales, memory ------------------------------------------------------ */

START_TEST(ticks_are_few_and_within)
{
    double ticks[MS_SCALE_TICKS];
    for (double to = 1.0; to < 1e12; to *= 3.7)
        for (uint32_t most = 2; most < 12; most++)
            for (int log_axis = 0; log_axis < 2; log_axis++) {
                ms_scale scale = {to / 40.0, to, 0.0, 700.0, log_axis == 1};
                uint32_t k = ms_scale_ticks(&scale, 1024.0, most, ticks);
                ck_assert_uint_le(k, most);
                for (uint32_t i = 0; i < k; i++) {
                    double x = ms_scale_px(&scale, ticks[i]);
                    ck_assert(x > -0.01 && x < 700.01);
                    ck_assert(i == 0 || ticks[i] > ticks[i - 1]);
                }
            }
}
END_TEST

START_TEST(memory_runs_out)
{
    ms_series series[] = {{"a", "a", 4, xs, ys, fit},
                          {"b", "b", 4, xs, ys, NULL}};
    ms_curves curves = curves_of(series, 2);
    char path[TESTS_PATH];
    strcpy(path, folder_path("a.svg"));
    for (uint32_t i = 0; i < 40; i++)
        add("a long name+with a second part", 40 - i % 7, 20 + i);
    usable_bytes = 37 * GIB;
    ms_err err = MS_ENOMEM;
    for (long i = 1; err == MS_ENOMEM; i++) {
        ms_drawing drawing = {.title = "t", .path = path, .arena = &arena};
        fault = (ms_fault){0};
        ck_assert_int_lt(i, 1000);
        ms_arena_fail_after(i);
        err = _i == 0 ? draw_trades(&drawing)
                      : ms_figure_curve(&curves, &drawing, &fault);
        ms_arena_fail_after(0);
        ck_assert_int_eq(err, fault.err);
        ms_arena_free(&arena);
    }
    ck_assert(err == MS_OK || (err == MS_EPROGRAM && !has_gnuplot()));
}
END_TEST

/* A limit meets every taking of memory for the script.  No gnuplot is found, so
 * what it would send, which comes in pieces of any size, takes nothing. */
START_TEST(each_taking_fails)
{
    ms_series series[] = {{"a", "a", 4, xs, ys, fit},
                          {"b", "b", 4, xs, ys, NULL}};
    ms_curves curves = curves_of(series, 2);
    add("a long name of a policy+with a second part", 30, 20);
    add("b", 40, 20);
    char *path = strdup(getenv("PATH"));
    setenv("PATH", "/nonexistent", 1);
    uint64_t used = 0;
    for (uint64_t limit = 0; limit < used || limit == 0; limit += used / 200) {
        ms_drawing drawing = {.title = "t", .path = "nowhere/a.svg"};
        drawing.arena = &arena;
        fault = (ms_fault){0};
        arena = (ms_arena){.limit_bytes = limit};
        ms_err err = _i == 0 ? ms_figure_pareto(trades, n, &drawing, &fault)
                             : ms_figure_curve(&curves, &drawing, &fault);
        ck_assert_int_eq(err, limit == 0 ? MS_EPROGRAM : MS_ENOMEM);
        if (limit == 0)
            used = arena.used_bytes, limit = 1;
        ms_arena_free(&arena);
    }
    setenv("PATH", path, 1);
    free(path);
}
END_TEST

Suite *suite_tradeoffs(void)
{
    Suite *suite = suite_create("tradeoffs");
    TCase *tcase = tcase_create("tradeoffs");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, nothing_beats_the_optimal);
    tcase_add_test(tcase, equal_ones_share_a_sign_and_a_name);
    tcase_add_loop_test(tcase, optimal_is_what_the_definition_says, 0, 20);
    tcase_add_test(tcase, capacity_has_a_zone);
    tcase_add_test(tcase, zone_without_capacity);
    tcase_add_test(tcase, work_that_differs_is_ranked_by_rate);
    tcase_add_test(tcase, the_choice_has_a_star);
    tcase_add_test(tcase, each_device_has_its_line);
    tcase_add_test(tcase, one_trade_and_none);
    tcase_add_test(tcase, thousands_are_thinned);
    tcase_add_test(tcase, families_beyond_the_signs_are_others);
    tcase_add_loop_test(tcase, names_can_hold_anything, 0, N_HOSTILE);
    tcase_add_test(tcase, curve_has_gaps_and_hollow_signs);
    tcase_add_test(tcase, curve_axis_follows_the_values);
    tcase_add_test(tcase, curve_capacity);
    tcase_add_test(tcase, curve_refuses);
    tcase_add_test(tcase, ticks_are_few_and_within);
    tcase_add_loop_test(tcase, memory_runs_out, 0, 2);
    tcase_add_loop_test(tcase, each_taking_fails, 0, 2);
    suite_add_tcase(suite, tcase);
    return suite;
}
