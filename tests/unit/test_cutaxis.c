/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The axis of levels begins above zero exactly where most of the peak never
 * changes, at a round number below everything, and the capacity is never lost.
 */
#include "plots/axes/cutaxis.h"
#include "plots/axes/legend.h"
#include "plots/axes/panel.h"
#include "plots/record/record.h"
#include "plots/record/stack.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tests/tests.h"

#include <math.h>
#include <string.h>

#define GIB ((uint64_t)1 << 30)

static ms_arena arena;

static void setup(void)
{
    arena = (ms_arena){0};
}

static void teardown(void)
{
    ms_arena_free(&arena);
}

/* A step of two levels of which the first is there all along. */
struct step {
    ms_text script;
    ms_point points[2];
    uint64_t reserved[2];
    ms_rank_report rank;
    ms_record_rank saw;
    ms_record record;
    ms_panel panel;
};

static void open_step(struct step *step, uint64_t lowest, uint64_t peak,
                      uint64_t capacity)
{
    *step = (struct step){.script = {.arena = &arena}};
    for (int i = 0; i < 2; i++) {
        uint64_t rest = i == 0 ? 0 : peak - lowest;
        step->points[i].t_ns = (uint64_t)i * 500;
        step->points[i].total_bytes = lowest + rest;
        step->points[i].bytes[MS_PARAMETERS] = lowest / 4;
        step->points[i].bytes[MS_OPTIMIZER_STATE] = lowest - lowest / 4;
        step->points[i].bytes[MS_ACTIVATIONS] = rest;
        step->reserved[i] = peak;
    }
    step->saw = (ms_record_rank){.has_time = true,
                                 .end_ns = 1000,
                                 .n_points = 2,
                                 .points = step->points,
                                 .reserved_bytes = step->reserved};
    step->record.report.capacity_bytes = capacity;
    step->panel = (ms_panel){.record = &step->record,
                             .rank = &step->rank,
                             .saw = &step->saw,
                             .script = &step->script,
                             .arena = &arena,
                             .area = {100.0, 50.0, 846.0, 390.0},
                             .head_room = 62.0,
                             .may_cut = true};
    ms_panel_open(&step->panel);
}

static void check_axis(const ms_panel *panel, uint64_t lowest, uint64_t peak,
                       uint64_t capacity)
{
    const ms_stack *stack = &panel->stack;
    double highest = (double)peak, base = stack->base_bytes;
    double ticks = base / (double)stack->bytes_unit->size / panel->step;
    if (capacity > peak && capacity <= 3 * peak)
        highest = (double)capacity;
    bool holds_line = (double)capacity >= highest / 4 && capacity < lowest;
    double least = (double)(capacity > 0 && holds_line ? capacity : lowest);
    ck_assert_int_eq(base > 0.0, least > 0.6 * highest);
    ck_assert(base == 0.0 || base < least);
    ck_assert_double_gt(stack->top_bytes, highest);
    ck_assert(base == 0.0 || fabs(ticks - round(ticks)) < 1e-6);
    ck_assert_double_le((stack->top_bytes - base) /
                            (double)stack->bytes_unit->size,
                        8.0 * panel->step);
    ck_assert(!panel->is_below || (double)capacity < base);
    if (capacity > 0 && capacity <= 3 * peak)
        ck_assert(panel->is_below || panel->shows_line);
    ck_assert(!(panel->is_below && ms_panel_is_over(panel)));
}

START_TEST(axis_begins_below_what_stays)
{
    static const uint64_t units[] = {1, 1000, GIB / 7, 40 * GIB};
    for (size_t u = 0; u < sizeof units / sizeof *units; u++)
        for (uint64_t lowest = 50; lowest <= 1000; lowest += 19)
            for (uint64_t capacity = 0; capacity < 3500; capacity += 217) {
                struct step step;
                open_step(&step, lowest * units[u], 1000 * units[u],
                          capacity * units[u]);
                check_axis(&step.panel, lowest * units[u], 1000 * units[u],
                           capacity * units[u]);
            }
}
END_TEST

static void check_has(const struct step *step, const char *words, bool has)
{
    ck_assert_msg((strstr(step->script.bytes, words) != NULL) == has, "%s",
                  words);
}

/* 2276 of 2604 GiB stay; the device has 79. */
START_TEST(what_is_cut_is_told)
{
    static const ms_category order[] = {MS_PARAMETERS, MS_OPTIMIZER_STATE,
                                        MS_ACTIVATIONS};
    for (int is_cut = 0; is_cut < 2; is_cut++) {
        struct step step;
        open_step(&step, is_cut > 0 ? 2276 * GIB : 1000 * GIB, 2604 * GIB,
                  79 * GIB);
        double height = ms_cutaxis_height(&step.panel, order, 3);
        ms_cutaxis_draw(&step.panel, order, 3);
        ms_cutaxis_write(&step.panel);
        ms_cutaxis_plot(&step.panel);
        ck_assert_int_eq(height > 0.0, is_cut > 0);
        check_has(&step,
                  "'the axis starts at 2200 GiB; below it: parameters, "
                  "optimizer state'",
                  is_cut > 0);
        check_has(&step, "capacity 79 GiB, far below", is_cut > 0);
        check_has(&step, "$torn using", is_cut > 0);
        check_has(&step, is_cut > 0 ? "base = 2200\n" : "base = 0\n", true);
    }
}
END_TEST

/* Whatever a panel does not have is in no legend. */
START_TEST(what_is_hatched_has_an_entry)
{
    for (uint64_t capacity = 0; capacity <= 1400; capacity += 100) {
        struct step step;
        ms_legend_entry entry;
        open_step(&step, 300, 1000, capacity);
        uint32_t n = ms_legend_over(&step.panel, &entry);
        ck_assert_uint_eq(n, capacity > 0 && capacity < 1000);
        step.panel.bottom_y = step.panel.area.y1;
        ms_panel_open_plot(&step.panel);
        ms_panel_close_plot(&step.panel);
        check_has(&step, "$over using", n > 0);
    }
}
END_TEST

Suite *suite_cutaxis(void)
{
    Suite *suite = suite_create("cutaxis");
    TCase *tcase = tcase_create("cutaxis");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, axis_begins_below_what_stays);
    tcase_add_test(tcase, what_is_cut_is_told);
    tcase_add_test(tcase, what_is_hatched_has_an_entry);
    suite_add_tcase(suite, tcase);
    return suite;
}
