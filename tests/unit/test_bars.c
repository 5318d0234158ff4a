/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Bars, ranks and layers: their scripts, read, and their pictures. */
#include "plots/figures/strips.h"
#include "plots/gnuplot/canvas.h"
#include "plots/plots.h"
#include "plots/record/record.h"
#include "sim/measure/bylayer.h"
#include "sim/measure/waits.h"
#include "sim/report.h"
#include "tests/tests.h"
#include "tests/unit/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GIB (UINT64_C(1) << 30)
#define MOST 300u

static ms_arena arena;
static ms_fault fault;
static const char *folder;
static char script[1 << 20];

static ms_bar bars[MOST];
static ms_rank_report ranks[MOST];
static ms_layer_use layers[1200];
static uint32_t n;
static uint64_t usable_bytes, more_bytes; /* more: of each bar than before */
static uint32_t data_ranks;

static bool has_gnuplot(void)
{
    return system("command -v gnuplot > /dev/null") == 0;
}

/* ---- what is drawn ------------------------------------------------------- */

/* 2 GiB of parameters, 3 of activations, 1 reserved besides; 250 ms. */
static void setup(void)
{
    arena = (ms_arena){0};
    fault = (ms_fault){0};
    folder = folder_open();
    n = 1;
    usable_bytes = 5 * GIB;
    more_bytes = 0;
    data_ranks = 1;
    for (uint32_t i = 0; i < MOST; i++) {
        bars[i] = (ms_bar){
            .name = "none",
            .by_category =
                {[MS_PARAMETERS] = 2 * GIB, [MS_ACTIVATIONS] = 3 * GIB},
            .allocated_bytes = 5 * GIB,
            .reserved_bytes = 6 * GIB,
            .step_ns = 250000000};
        ranks[i] = (ms_rank_report){
            .rank = (uint8_t)i,
            .peak =
                {.by_category =
                     {[MS_PARAMETERS] = 2 * GIB, [MS_ACTIVATIONS] = 3 * GIB},
                 .allocated_bytes = 5 * GIB,
                 .reserved_bytes = 5 * GIB},
            .time = {.step_ns = 250000000,
                     .forward_ns = 100000000,
                     .backward_ns = 120000000,
                     .stall_ns = 20000000,
                     .idle_ns = 10000000},
            .stalls_ns = {
                [MS_CAUSE_DISK] = 20000000, [MS_CAUSE_IDLE] = 10000000}};
    }
    for (uint32_t i = 0; i < 1200; i++)
        layers[i] = (ms_layer_use){.name = "h",
                                   .saved_bytes = GIB,
                                   .forward_ns = 2000000,
                                   .recompute_ns = 1000000};
}

static void teardown(void)
{
    folder_close();
    ms_arena_free(&arena);
}

static ms_err draw_bars(const ms_drawing *drawing)
{
    for (uint32_t i = 0; i < n; i++)
        bars[i].limit = (ms_limit){"d", usable_bytes + (usable_bytes ? GIB : 0),
                                   usable_bytes + more_bytes * i};
    return ms_figure_bars(bars, n, drawing, &fault);
}

static ms_err draw_ranks(const ms_drawing *drawing)
{
    ms_report report = {
        .capacity_bytes = usable_bytes, .n_ranks = (uint16_t)n, .ranks = ranks};
    return ms_figure_ranks(&report, data_ranks, drawing, &fault);
}

static ms_err draw_layers(const ms_drawing *drawing)
{
    return ms_figure_layers(layers, n, drawing, &fault);
}

static ms_err (*const kinds[])(const ms_drawing *) = {draw_bars, draw_ranks,
                                                      draw_layers};
enum { BARS, RANKS, LAYERS, N_KINDS };

static ms_err draw(int kind, const char *title, const char *name)
{
    ms_drawing drawing = {.title = title,
                          .subtitle = title,
                          .path = folder_path(name),
                          .arena = &arena};
    return kinds[kind](&drawing);
}

/* The script of a figure, whether or not gnuplot is there to run it. */
static void read_script(int kind)
{
    char path[TESTS_PATH], kept[TESTS_PATH];
    strcpy(path, folder_path("a.svg"));
    strcpy(kept, folder_path("a.gp"));
    ms_drawing drawing = {
        .title = "t", .path = path, .script_path = kept, .arena = &arena};
    ms_err err = kinds[kind](&drawing);
    ck_assert_msg(err == MS_OK || (err == MS_EPROGRAM && !has_gnuplot()), "%s",
                  fault.what);
    fault = (ms_fault){0};
    ck_assert_uint_lt(folder_read(kept, script, sizeof script),
                      sizeof script - 1);
}

static void has(const char *part)
{
    ck_assert_msg(strstr(script, part) != NULL, "no %s in\n%s", part, script);
}

static void lacks(const char *part)
{
    ck_assert_msg(strstr(script, part) == NULL, "%s in\n%s", part, script);
}

/* Lines of a data block. */
static uint32_t count_rows(const char *block)
{
    char opening[64];
    snprintf(opening, sizeof opening, "$%s << EOD\n", block);
    const char *at = strstr(script, opening);
    uint32_t rows = 0;
    ck_assert_msg(at != NULL, "no block %s", block);
    for (at += strlen(opening); strncmp(at, "EOD\n", 4) != 0; rows++)
        at = strchr(at, '\n') + 1;
    return rows;
}

/* The first row of a data block: x from, x to, y from, y to. */
static void read_row(const char *block, double row[4])
{
    char opening[64];
    snprintf(opening, sizeof opening, "$%s << EOD\n", block);
    const char *at = strstr(script, opening);
    ck_assert_ptr_nonnull(at);
    ck_assert_int_eq(sscanf(at + strlen(opening), "%lf %lf %lf %lf", &row[0],
                            &row[1], &row[2], &row[3]),
                     4);
}

/* ---- bars ---------------------------------------------------------------- */

/* Parts begin where the one before ends (but for the seam of 1 px), as long as
 * their bytes; the total is in red where it does not fit. */
START_TEST(a_bar_is_its_parts)
{
    double parameters[4], activations[4], rest[4];
    read_script(BARS);
    read_row("memory0", parameters);
    read_row("memory5", activations);
    read_row("memory8", rest);
    double gib = (parameters[1] + 1.0 - parameters[0]) / 2;
    ck_assert_double_eq_tol(activations[0], parameters[1] + 1.0, 0.01);
    ck_assert_double_eq_tol(activations[1] + 1.0 - activations[0], 3 * gib,
                            0.01);
    ck_assert_double_eq_tol(rest[0], activations[1] + 1.0, 0.01);
    ck_assert_double_eq_tol(rest[1] + 1.0 - rest[0], gib, 0.01);
    has("'parameters'");
    has("'reserved, unallocated'");
    lacks("'gradients'");
    has("'3.00'");
    has("'{/:Bold 6.00}'");
    has("textcolor rgb '#B3261E' enhanced");
    has("'capacity 6 GiB less context 1 GiB'");
    has("'peak device memory (GiB)'");
    has("'step (ms)'");
    has("'250.0'");
}
END_TEST

START_TEST(a_bar_that_fits_is_black)
{
    bars[0].fits = true;
    usable_bytes = 0;
    bars[0].step_ns = 0;
    bars[0].reserved_bytes = 0; /* not told */
    read_script(BARS);
    has("'{/:Bold 5.00}'");
    lacks("#B3261E");
    lacks("capacity");
    lacks("step (");
    lacks("unallocated");
}
END_TEST

START_TEST(a_far_capacity_is_a_note)
{
    usable_bytes = 100 * GIB;
    read_script(BARS);
    has("'capacity 101 GiB less context 1 GiB →'");
    has("'{/:Bold 6.00}'");
}
END_TEST

/* Beside 5 of 5 GiB, 600 would leave nothing to be seen. */
START_TEST(a_bar_far_beyond_is_broken)
{
    double row[4];
    n = 2;
    bars[0].by_category[MS_PARAMETERS] = 600 * GIB;
    bars[0].reserved_bytes = 0;
    read_script(BARS);
    has("'{/:Bold 603.0}'");
    has("linewidth 2 linecolor rgb '#FFFFFF'");
    read_row("memory0", row);
    ck_assert_double_lt(row[1], MS_FIGURE_WIDTH);
    bars[1] = bars[0];
    read_script(BARS); /* alone it is whole */
    lacks("linewidth 2 linecolor rgb '#FFFFFF'");
}
END_TEST

START_TEST(a_refused_run_has_a_word)
{
    n = 2;
    bars[1].instead = "refused";
    bars[1].step_ns = 0;
    read_script(BARS);
    has("'refused'");
    ck_assert_uint_eq(count_rows("memory0"), 1);
}
END_TEST

START_TEST(more_than_forty_runs_are_counted)
{
    n = 53;
    read_script(BARS);
    has("'and 13 more, not drawn'");
    ck_assert_uint_eq(count_rows("memory0"), 40);
    n = 40;
    read_script(BARS);
    lacks("more");
    ck_assert_uint_eq(count_rows("memory0"), 40);
}
END_TEST

/* ---- ranks --------------------------------------------------------------- */

START_TEST(one_rank_has_its_numbers)
{
    data_ranks = 8;
    usable_bytes = 4 * GIB;
    read_script(RANKS);
    has("'rank 0 (the same on all 8)'");
    has("'wait: disk'");
    has("'idle'");
    has("'20.00'");
    has("'8 %'"); /* of 250 ms */
    has("'{/:Bold 250.00}'");
    has("'60 %'"); /* activations */
    has("'{/:Bold 5.00}'");
    has("#B3261E");
    data_ranks = 1;
    read_script(RANKS);
    lacks("rank 0");
}
END_TEST

START_TEST(ranks_have_rows)
{
    n = 3;
    read_script(RANKS);
    has("'rank 0'");
    has("'rank 2'");
    lacks("the same");
    ck_assert_uint_eq(count_rows("memory0"), 3);
    ck_assert_uint_eq(count_rows("time0"), 3);
    data_ranks = 4;
    read_script(RANKS);
    has("'each the same on 4 devices'");
}
END_TEST

/* 255 ranks, four of which share a row: 201 is drawn for 200 to 203. */
START_TEST(of_many_ranks_the_highest_stay)
{
    n = 255;
    ranks[201].peak.by_category[MS_GRADIENTS] = GIB;
    ranks[201].peak.allocated_bytes += GIB;
    read_script(RANKS);
    has("'of each 4 neighbouring ranks the one with the highest peak'");
    has("'rank 201'");
    lacks("'rank 200'");
    lacks("'rank 203'");
    has("'rank 252'");
    ck_assert_uint_eq(count_rows("memory0"), 64);
    ck_assert_uint_eq(count_rows("memory4"), 1);
}
END_TEST

START_TEST(parts_of_the_time_sum_to_the_step)
{
    uint64_t parts[MS_STRIPS_MOST];
    ms_strips_time_parts(&ranks[0], parts);
    ck_assert_uint_eq(ms_strips_sum(parts), ranks[0].time.step_ns);
    ck_assert_uint_eq(parts[MS_WORK_WAIT_DISK], 20000000);
}
END_TEST

/* ---- layers -------------------------------------------------------------- */

START_TEST(layers_have_bars_and_totals)
{
    n = 5;
    layers[3].name = "h.3";
    layers[3].saved_bytes = 2 * GIB;
    layers[4].recompute_ns = 0;
    read_script(LAYERS);
    has("'saved for backward, in all 6 GiB'");
    has("'recomputed, in all 4.00 ms (40 % of forward)'");
    has("'h.3'");
    has("': 2 GiB'");
    ck_assert_uint_eq(count_rows("saved"), 5);
    ck_assert_uint_eq(count_rows("again"), 4);
}
END_TEST

START_TEST(layers_that_save_as_much_are_counted)
{
    n = 3;
    read_script(LAYERS);
    has("' and 2 others: 1 GiB each'");
}
END_TEST

START_TEST(nothing_has_words)
{
    n = 2;
    layers[0].recompute_ns = layers[1].recompute_ns = 0;
    read_script(LAYERS);
    has("'nothing is recomputed'");
    lacks("recomputed, in all");
    lacks("$again");
    layers[0].saved_bytes = layers[1].saved_bytes = 0;
    read_script(LAYERS);
    has("'nothing is saved for backward'");
    lacks("$saved");
    layers[0].recompute_ns = 5;
    layers[0].forward_ns = layers[1].forward_ns = 0; /* not told */
    read_script(LAYERS);
    has("'recomputed, in all 5 ns'");
    has("'nothing is saved for backward'");
}
END_TEST

START_TEST(many_layers_share_bars)
{
    double row[4];
    n = 1200;
    layers[7].saved_bytes = 4 * GIB;
    layers[7].name = "seventh";
    layers[1199].recompute_ns = 0;
    read_script(LAYERS);
    has("'each bar: the most of 4 neighbouring layers'");
    has("'seventh'");
    ck_assert_uint_eq(count_rows("saved"), 300);
    ck_assert_uint_eq(count_rows("again"), 300);
    read_row("saved", row); /* a quarter as high as the second */
    ck_assert_double_gt(row[3], row[2]);
}
END_TEST

/* ---- all of them --------------------------------------------------------- */

START_TEST(without_data_it_is_said)
{
    n = 0;
    ck_assert_int_eq(draw(_i, "t", "a.svg"), MS_EINPUT);
    ck_assert_uint_gt(strlen(fault.what), 0);
    ck_assert_uint_gt(strlen(fault.hint), 0);
    ck_assert_int_eq(folder_entries(), 0);
}
END_TEST

START_TEST(zeros_are_drawn)
{
    n = 2;
    for (uint32_t i = 0; i < 2; i++) {
        bars[i] = (ms_bar){.name = "", .fits = i > 0};
        ranks[i] = (ms_rank_report){.rank = (uint8_t)i};
        layers[i] = (ms_layer_use){.name = ""};
    }
    usable_bytes = _i < N_KINDS ? 0 : GIB;
    read_script(_i % N_KINDS);
    n = 1;
    read_script(_i % N_KINDS);
}
END_TEST

/* The greatest numbers there are. */
START_TEST(huge_numbers_are_drawn)
{
    n = 2;
    bars[0].by_category[MS_PARAMETERS] = UINT64_MAX / 2;
    bars[0].step_ns = UINT64_MAX;
    ranks[0].peak.by_category[MS_PARAMETERS] = UINT64_MAX / 2;
    ranks[0].time.forward_ns = UINT64_MAX / 2;
    layers[0].saved_bytes = layers[0].recompute_ns = UINT64_MAX / 2;
    read_script(_i);
    lacks("nan");
    lacks("inf");
}
END_TEST

static const struct {
    const char *name, *first;
} pictures[] = {{"a.svg", "<?xml"}, {"a.png", "\x89PNG"}, {"a.pdf", "%PDF"}};

START_TEST(formats)
{
    int format = _i / N_KINDS;
    const char *name = pictures[format].name, *first = pictures[format].first;
    if (!has_gnuplot())
        return;
    n = 3;
    ck_assert_msg(draw(_i % N_KINDS, "a model", name) == MS_OK, "%s",
                  fault.what);
    folder_read(folder_path(name), script, sizeof script);
    ck_assert_int_eq(memcmp(script, first, strlen(first)), 0);
    ck_assert_int_eq(folder_entries(), 1);
}
END_TEST

static const char *const hostile[] = {
    "`touch PWNED`",
    "\"; system('touch PWNED'); \"",
    "'; system('touch PWNED'); '",
    "x'\n!touch PWNED\n",
    "x\nEOD\n!touch PWNED\nEOD\n",
    "\\'\nset output '|touch PWNED'\n",
    "@{system('touch PWNED')} \\",
    "}' ; !touch PWNED #",
    "\xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x98\x80",
    "\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d",
    "\xff\xfe\x80 \x1b[31m ^{_a",
    "{/=500 huge} &{x} @y ~a{b}",
};
#define N_HOSTILE ((int)(sizeof hostile / sizeof hostile[0]))

static void name_all(const char *name)
{
    n = 3;
    bars[0].name = bars[1].name = bars[2].name = name;
    bars[2].instead = name;
    layers[0].name = layers[1].name = layers[2].name = name;
}

/* Every line of the script is one of ours, with its quotes closed. */
static void check_lines(void)
{
    static const char *const ours[] = {"H = ", "set ", "unset ",
                                       "plot", "  $",  "EOD"};
    for (char *line = strtok(script, "\n"); line; line = strtok(NULL, "\n")) {
        bool known = strchr("-0123456789$#", *line) != NULL;
        uint32_t quotes = 0;
        for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
            known |= strncmp(line, ours[i], strlen(ours[i])) == 0;
        for (const char *at = line; *at != '\0'; at++)
            quotes += *at == '\'';
        ck_assert_msg(known && quotes % 2 == 0, "%s", line);
    }
}

START_TEST(names_inject_nothing)
{
    char before[4096];
    int kind = _i % N_KINDS;
    ck_assert_ptr_nonnull(getcwd(before, sizeof before));
    ck_assert_int_eq(chdir(folder), 0);
    name_all(hostile[_i / N_KINDS]);
    read_script(kind);
    check_lines();
    if (has_gnuplot())
        ck_assert_msg(draw(kind, hostile[_i / N_KINDS], "a.png") == MS_OK, "%s",
                      fault.what);
    ck_assert_int_eq(chdir(before), 0);
    ck_assert_int_eq(access(folder_path("PWNED"), F_OK), -1);
    ck_assert_int_le(folder_entries(), 3);
}
END_TEST

/* Names are cut, and keep their place: the bars begin by half of the width. */
START_TEST(long_names_are_cut)
{
    enum { LENGTH = 1 << 20 };
    double row[4];
    char *name = ms_arena_take(&arena, LENGTH + 1, 1);
    memset(name, 'w', LENGTH);
    name_all(name);
    read_script(_i);
    ck_assert_uint_lt(strlen(script), 30000);
    if (_i == RANKS)
        return;
    has("www…'");
    read_row(_i == BARS ? "memory0" : "saved", row);
    ck_assert_double_lt(row[0], MS_FIGURE_WIDTH / 2);
}
END_TEST

START_TEST(without_memory)
{
    ms_err err = MS_ENOMEM;
    if (!has_gnuplot())
        return;
    n = 3;
    for (long i = 1; err == MS_ENOMEM && i < 100; i++) {
        ms_arena_free(&arena);
        fault = (ms_fault){0};
        ms_arena_fail_after(i);
        err = draw(_i, "t", "a.svg");
        ms_arena_fail_after(0);
        ck_assert_int_eq(folder_entries(), err == MS_OK);
    }
    ck_assert_int_eq(err, MS_OK);
}
END_TEST

START_TEST(ink_is_legible)
{
    ck_assert_str_eq(ms_strips_ink("#2F62A8"), "#FFFFFF");
    ck_assert_str_eq(ms_strips_ink("#4A4A4A"), "#FFFFFF");
    ck_assert_str_eq(ms_strips_ink("#A63D14"), "#FFFFFF");
    ck_assert_str_eq(ms_strips_ink("#7FA9DA"), MS_INK);
    ck_assert_str_eq(ms_strips_ink("#F9C768"), MS_INK);
}
END_TEST

Suite *suite_bars(void)
{
    Suite *suite = suite_create("bars");
    TCase *tcase = tcase_create("bars");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 100);
    tcase_add_test(tcase, a_bar_is_its_parts);
    tcase_add_test(tcase, a_bar_that_fits_is_black);
    tcase_add_test(tcase, a_far_capacity_is_a_note);
    tcase_add_test(tcase, a_bar_far_beyond_is_broken);
    tcase_add_test(tcase, a_refused_run_has_a_word);
    tcase_add_test(tcase, more_than_forty_runs_are_counted);
    tcase_add_test(tcase, one_rank_has_its_numbers);
    tcase_add_test(tcase, ranks_have_rows);
    tcase_add_test(tcase, of_many_ranks_the_highest_stay);
    tcase_add_test(tcase, parts_of_the_time_sum_to_the_step);
    tcase_add_test(tcase, layers_have_bars_and_totals);
    tcase_add_test(tcase, layers_that_save_as_much_are_counted);
    tcase_add_test(tcase, nothing_has_words);
    tcase_add_test(tcase, many_layers_share_bars);
    tcase_add_test(tcase, ink_is_legible);
    tcase_add_loop_test(tcase, without_data_it_is_said, 0, N_KINDS);
    tcase_add_loop_test(tcase, zeros_are_drawn, 0, 2 * N_KINDS);
    tcase_add_loop_test(tcase, huge_numbers_are_drawn, 0, N_KINDS);
    tcase_add_loop_test(tcase, formats, 0, 3 * N_KINDS);
    tcase_add_loop_test(tcase, names_inject_nothing, 0, N_HOSTILE * N_KINDS);
    tcase_add_loop_test(tcase, long_names_are_cut, 0, N_KINDS);
    tcase_add_loop_test(tcase, without_memory, 0, N_KINDS);
    suite_add_tcase(suite, tcase);
    return suite;
}
