/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The label of the peak does not overlap the line of what is reserved. */
#include "plots/axes/labels.h"
#include "plots/gnuplot/canvas.h"
#include "plots/record/stack.h"
#include "sim/timeline.h"
#include "tests/tests.h"

#define WIDTH 260.0
#define HEIGHT 25.0

/* A step of two levels, with what is reserved at `reserved_bytes` all along. */
static ms_box place(uint64_t reserved_bytes, double peak_at, bool left_first,
                    ms_stack *stack)
{
    static ms_point points[2];
    static uint64_t reserved[2];
    const ms_box area = {100.0, 50.0, 846.0, 390.0};
    points[0] = (ms_point){.t_ns = 0, .total_bytes = 500};
    points[1] = (ms_point){.t_ns = (uint64_t)peak_at, .total_bytes = 1000};
    reserved[0] = reserved[1] = reserved_bytes;
    *stack = (ms_stack){.area = area,
                        .points = points,
                        .reserved_bytes = reserved,
                        .n = 2,
                        .end_ns = 1000,
                        .top_bytes = (double)reserved_bytes * 1.25};
    const ms_room room = {
        .area = area, .grid_px = 60.0, .line_y = -1.0, .stack = stack};
    return ms_labels_peak(&room, ms_stack_x(stack, peak_at),
                          ms_stack_y(stack, 1000.0), WIDTH, HEIGHT, left_first);
}

START_TEST(label_of_the_peak_is_off_the_line)
{
    for (uint64_t reserved = 1000; reserved < 1400; reserved += 7)
        for (double at = 100.0; at < 1000.0; at += 100.0)
            for (int left = 0; left < 2; left++) {
                ms_stack stack;
                ms_box box = place(reserved, at, left > 0, &stack);
                double y = ms_stack_y(&stack, (double)reserved);
                ck_assert(!ms_stack_crosses(&stack, &box));
                ck_assert(y <= box.y0 || y >= box.y1);
                ck_assert_double_ge(box.y0, stack.area.y0);
                ck_assert_double_ge(box.x0, stack.area.x0);
                ck_assert_double_le(box.x1, stack.area.x1);
            }
}
END_TEST

Suite *suite_labels(void)
{
    Suite *suite = suite_create("labels");
    TCase *tcase = tcase_create("labels");
    tcase_add_test(tcase, label_of_the_peak_is_off_the_line);
    suite_add_tcase(suite, tcase);
    return suite;
}
