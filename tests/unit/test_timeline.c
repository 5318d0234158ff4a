/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Levels over time: points that are left out, rows that are alive. */
#include "tests/tests.h"

#include "sim/plan.h"
#include "sim/timeline.h"

/* A saw of n teeth by hand: row 0 (100 bytes) stays; each tooth allocates a
 * row of 1 + i % 7 bytes at 2i ns and frees it at 2i + 1 ns.  Tooth 1000 is
 * a peak of 50 bytes, host memory has a row that does not count. */
#define TEETH 5000u
#define N_ROWS (TEETH + 2)
#define PEAK_TOOTH 1000u

typedef struct saw_line {
    ms_row row[N_ROWS];
    ms_plan_op op[2];
    ms_event events[2 * N_ROWS];
    ms_plan plan;
    ms_timeline line;
} saw_line;

static void add_event(saw_line *saw, uint64_t t_ns, uint32_t row,
                      bool allocates)
{
    saw->events[saw->line.n_events++] = (ms_event){t_ns, row, allocates};
}

static saw_line *make_saw(ms_arena *arena)
{
    saw_line *made = ms_arena_take(arena, 1, sizeof *made);
    ck_assert_ptr_nonnull(made);
    made->plan = (ms_plan){
        .n_rows = N_ROWS, .n_ops = 1, .row = made->row, .op = made->op};
    made->line = (ms_timeline){.plan = &made->plan, .events = made->events};
    made->row[0].bytes = 100;
    made->row[N_ROWS - 1].bytes = 100000;
    made->row[N_ROWS - 1].pool = MS_HOST_POOL;
    add_event(made, 0, 0, true);
    add_event(made, 0, N_ROWS - 1, true);
    for (uint32_t i = 0; i < TEETH; i++) {
        made->row[i + 1].bytes = i == PEAK_TOOTH ? 50 : 1 + i % 7;
        made->row[i + 1].category = MS_TEMPORARIES;
        add_event(made, 2 * i, i + 1, true);
        add_event(made, 2 * i + 1, i + 1, false);
    }
    return made;
}

START_TEST(thinned_points_keep_the_peak)
{
    ms_arena arena = {0};
    ms_fault fault = {0};
    saw_line *saw = make_saw(&arena);
    for (uint32_t most = 4; most < 3000; most = most * 3 / 2) {
        ms_point *points;
        uint32_t n, at_peak = 0;
        ck_assert_int_eq(ms_timeline_points(&saw->line, 0, most, &arena,
                                            &points, &n, &fault),
                         MS_OK);
        ck_assert_uint_le(n, most);
        for (uint32_t i = 0; i < n; i++) {
            ck_assert_uint_eq(points[i].bytes[MS_PARAMETERS], 100);
            ck_assert_uint_eq(points[i].bytes[MS_TEMPORARIES],
                              points[i].total_bytes - 100);
            if (points[i].total_bytes == 150) {
                ck_assert_uint_eq(points[i].t_ns, 2 * PEAK_TOOTH);
                at_peak++;
            }
        }
        ck_assert_uint_eq(at_peak, 1);
        ck_assert_uint_eq(points[0].t_ns, 0);
        ck_assert_uint_eq(points[n - 1].t_ns, 2 * TEETH - 1);
    }
    ms_arena_free(&arena);
}
END_TEST

START_TEST(few_events_are_all_shown)
{
    ms_arena arena = {0};
    ms_fault fault = {0};
    saw_line *saw = make_saw(&arena);
    ms_point *points;
    uint32_t n;
    ck_assert_int_eq(ms_timeline_points(&saw->line, 0, 2 * N_ROWS, &arena,
                                        &points, &n, &fault),
                     MS_OK);
    ck_assert_uint_eq(n, 2 * TEETH + 1);
    saw->line.n_events = 0;
    ck_assert_int_eq(
        ms_timeline_points(&saw->line, 0, 4, &arena, &points, &n, &fault),
        MS_OK);
    ck_assert_uint_eq(n, 0);
    ms_arena_free(&arena);
}
END_TEST

START_TEST(alive_rows_come_largest_first)
{
    ms_arena arena = {0};
    ms_fault fault = {0};
    saw_line *saw = make_saw(&arena);
    uint32_t *rows, n, event = 2 + 2 * PEAK_TOOTH;
    saw->row[PEAK_TOOTH + 1].bytes = 500;
    ck_assert_int_eq(
        ms_timeline_alive(&saw->line, event, 0, &arena, &rows, &n, &fault),
        MS_OK);
    ck_assert_uint_eq(n, 2);
    ck_assert_uint_eq(rows[0], PEAK_TOOTH + 1);
    ck_assert_uint_eq(rows[1], 0);
    ck_assert_int_eq(
        ms_timeline_alive(&saw->line, event + 1, 0, &arena, &rows, &n, &fault),
        MS_OK);
    ck_assert_uint_eq(n, 1);
    ck_assert_int_eq(
        ms_timeline_alive(&saw->line, event, 1, &arena, &rows, &n, &fault),
        MS_OK);
    ck_assert_uint_eq(n, 0);
    ms_arena_free(&arena);
}
END_TEST

Suite *suite_timeline(void)
{
    Suite *suite = suite_create("timeline");
    TCase *tcase = tcase_create("timeline");
    tcase_add_test(tcase, thinned_points_keep_the_peak);
    tcase_add_test(tcase, few_events_are_all_shown);
    tcase_add_test(tcase, alive_rows_come_largest_first);
    suite_add_tcase(suite, tcase);
    return suite;
}
