/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PLOTS_STACK_H
#define MS_PLOTS_STACK_H

/* The data of the stacked areas.  Private to plots/. */

#include "plots/axes/units.h"
#include "plots/gnuplot/canvas.h"
#include "plots/record/record.h"
#include "sim/timeline.h"

/* From the bottom: first what stays constant over the step, so that the areas
 * above it have a level base, then what policies change. */
extern const ms_category ms_stack_order[MS_N_CATEGORIES];

/* A step function of the levels, and how it lies in the plot area. */
typedef struct ms_stack {
    ms_box area;
    const ms_point *points;
    const uint64_t *reserved_bytes; /* while each point lasts */
    uint32_t n;
    uint64_t end_ns;   /* right border, > 0 */
    double top_bytes;  /* upper border, > 0 */
    double base_bytes; /* lower border: 0 unless the axis is cut */
    const ms_unit *bytes_unit, *time_unit;
} ms_stack;

/* Merges points until each lasts at least end_ns / columns, the highest of
 * what is merged staying: what is thinner than a px would not be drawn, or only
 * faintly.  In place; returns how many are left. */
uint32_t ms_stack_thicken(ms_point *points, uint32_t n, uint64_t end_ns,
                          uint32_t columns);
double ms_stack_x(const ms_stack *stack, double t_ns);
double ms_stack_y(const ms_stack *stack, double bytes);
/* The data block $name: the outline of the sum of categories order[0..n). */
void ms_stack_write(const ms_stack *stack, const char *name,
                    const ms_category *order, uint32_t n, ms_text *script);
/* The data block $over: diagonal strokes over what exceeds line_bytes. */
void ms_stack_write_hatch(const ms_stack *stack, double line_bytes,
                          ms_text *script);
/* The data block $reserved: the outline of what is reserved. */
void ms_stack_write_reserved(const ms_stack *stack, ms_text *script);
/* The data block $name: the outline of another step's level, which at the upper
 * border stays in sight. */
void ms_stack_write_level(const ms_stack *stack, const char *name,
                          const ms_record_without *without, ms_text *script);
/* Does it go through the box? */
bool ms_stack_level_crosses(const ms_stack *stack,
                            const ms_record_without *without,
                            const ms_box *box);
/* The highest level while x0 <= x < x1. */
uint64_t ms_stack_highest(const ms_stack *stack, double x0, double x1);
/* Does the line of what is reserved go through the box? */
bool ms_stack_crosses(const ms_stack *stack, const ms_box *box);

#endif
