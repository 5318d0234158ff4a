/* SPDX-License-Identifier: GPL-3.0-or-later */

#include <assert.h>
#include <math.h>

#include "plots/gnuplot/canvas.h"
#include "plots/record/record.h"
#include "plots/record/stack.h"
#include "sim/timeline.h"

#define HATCH_PX 7.0 /* horizontal distance of the strokes */
#define LEAST_PX 0.3 /* a stroke shorter than this is not seen */

const ms_category ms_stack_order[MS_N_CATEGORIES] = {
    MS_PARAMETERS, MS_OPTIMIZER_STATE, MS_WORKSPACE,     MS_INPUTS,
    MS_GRADIENTS,  MS_ACTIVATIONS,     MS_COMMUNICATION, MS_TEMPORARIES,
};

double ms_stack_x(const ms_stack *stack, double t_ns)
{
    double width = stack->area.x1 - stack->area.x0;
    return stack->area.x0 + t_ns / (double)stack->end_ns * width;
}

double ms_stack_y(const ms_stack *stack, double bytes)
{
    double height = stack->area.y1 - stack->area.y0;
    return stack->area.y1 - (bytes - stack->base_bytes) /
                                (stack->top_bytes - stack->base_bytes) * height;
}

static double point_end_ns(const ms_stack *stack, uint32_t i)
{
    return (double)(i + 1 < stack->n ? stack->points[i + 1].t_ns
                                     : stack->end_ns);
}

static bool is_within(const ms_stack *stack, uint32_t i, double x0, double x1)
{
    return ms_stack_x(stack, (double)stack->points[i].t_ns) < x1 &&
           ms_stack_x(stack, point_end_ns(stack, i)) >= x0;
}

uint64_t ms_stack_highest(const ms_stack *stack, double x0, double x1)
{
    uint64_t highest = 0;
    for (uint32_t i = 0; i < stack->n; i++)
        if (is_within(stack, i, x0, x1) &&
            stack->points[i].total_bytes > highest)
            highest = stack->points[i].total_bytes;
    return highest;
}

bool ms_stack_crosses(const ms_stack *stack, const ms_box *box)
{
    uint64_t lowest = UINT64_MAX, highest = 0;
    for (uint32_t i = 0; i < stack->n; i++) {
        uint64_t bytes = stack->reserved_bytes[i];
        if (!is_within(stack, i, box->x0, box->x1))
            continue;
        lowest = bytes < lowest ? bytes : lowest;
        highest = bytes > highest ? bytes : highest;
    }
    return lowest <= highest && ms_stack_y(stack, (double)lowest) > box->y0 &&
           ms_stack_y(stack, (double)highest) < box->y1;
}

/* ---- thickness ----------------------------------------------------------- */

/* A last point that is the highest must not be too late to be seen. */
static uint32_t keep_last(ms_point *points, uint32_t kept, ms_point *last,
                          uint64_t latest_ns)
{
    if (kept > 0 && last->t_ns > latest_ns &&
        last->total_bytes > points[kept - 1].total_bytes) {
        last->t_ns = latest_ns;
        kept -= points[kept - 1].t_ns >= latest_ns;
    }
    points[kept] = *last;
    return kept + 1;
}

/* open is the point that is being made wide enough, late the last one of
 * those below it meanwhile: the level to go on with. */
uint32_t ms_stack_thicken(ms_point *points, uint32_t n, uint64_t end_ns,
                          uint32_t columns)
{
    uint64_t least_ns = end_ns / columns + (end_ns % columns > 0);
    uint32_t kept = 0;
    bool has_late = false;
    if (n == 0 || least_ns == 0)
        return n;
    ms_point open = points[0], late = open;
    for (uint32_t i = 1; i < n; i++) {
        uint64_t t_ns = points[i].t_ns;
        if (has_late && t_ns - open.t_ns >= least_ns) {
            late.t_ns = open.t_ns + least_ns;
            points[kept++] = open;
            open = late;
            has_late = false;
        }
        if (t_ns - open.t_ns >= least_ns) {
            points[kept++] = open;
            open = points[i];
        } else if (points[i].total_bytes > open.total_bytes) {
            uint64_t start_ns = open.t_ns;
            open = points[i];
            open.t_ns = start_ns;
            has_late = false;
        } else {
            late = points[i];
            has_late = true;
        }
    }
    late.t_ns = open.t_ns + least_ns;
    kept = keep_last(points, kept, &open, end_ns - least_ns);
    if (has_late && late.t_ns < end_ns)
        points[kept++] = late;
    return kept;
}

/* ---- areas --------------------------------------------------------------- */

static void put_vertex(const ms_stack *stack, double t_ns, double bytes,
                       ms_text *script)
{
    ms_text_double(script, t_ns / (double)stack->time_unit->size);
    ms_text_put(script, " ", 1);
    ms_text_double(script, fmax(bytes, stack->base_bytes) /
                               (double)stack->bytes_unit->size);
    ms_text_put(script, "\n", 1);
}

static double sum(const ms_point *point, const ms_category *order, uint32_t n)
{
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < n; k++)
        bytes += point->bytes[order[k]];
    return (double)bytes;
}

/* gnuplot joins points by ramps: each change is given as two points.  Where
 * the sum stays, nothing is written. */
void ms_stack_write(const ms_stack *stack, const char *name,
                    const ms_category *order, uint32_t n, ms_text *script)
{
    assert(n > 0);
    double level = 0.0;
    ms_text_add(script, "$%s << EOD\n", name);
    for (uint32_t i = 0; i < stack->n; i++) {
        double t_ns = (double)stack->points[i].t_ns;
        double next = sum(&stack->points[i], order, n);
        if (i > 0 && next == level)
            continue;
        put_vertex(stack, t_ns, level, script);
        put_vertex(stack, t_ns, next, script);
        level = next;
    }
    put_vertex(stack, (double)stack->end_ns, level, script);
    ms_text_add(script, "EOD\n");
}

void ms_stack_write_reserved(const ms_stack *stack, ms_text *script)
{
    double level = 0.0;
    ms_text_add(script, "$reserved << EOD\n");
    for (uint32_t i = 0; i < stack->n; i++) {
        double t_ns = (double)stack->points[i].t_ns;
        double next = (double)stack->reserved_bytes[i];
        if (i > 0 && next == level)
            continue;
        if (i > 0)
            put_vertex(stack, t_ns, level, script);
        put_vertex(stack, t_ns, next, script);
        level = next;
    }
    put_vertex(stack, (double)stack->end_ns, level, script);
    ms_text_add(script, "EOD\n");
}

/* Where the level lies in the area: what is above it, at its border. */
static double bounded(const ms_stack *stack, uint64_t bytes)
{
    return fmin((double)bytes, stack->top_bytes);
}

void ms_stack_write_level(const ms_stack *stack, const char *name,
                          const ms_record_without *without, ms_text *script)
{
    uint64_t end_ns =
        without->end_ns < stack->end_ns ? without->end_ns : stack->end_ns;
    double level = 0.0;
    ms_text_add(script, "$%s << EOD\n", name);
    for (uint32_t i = 0; i < without->n; i++) {
        double t_ns = (double)without->levels[i].t_ns;
        if (without->levels[i].t_ns > end_ns)
            break;
        if (i > 0)
            put_vertex(stack, t_ns, level, script);
        level = bounded(stack, without->levels[i].bytes);
        put_vertex(stack, t_ns, level, script);
    }
    put_vertex(stack, (double)end_ns, level, script);
    ms_text_add(script, "EOD\n");
}

bool ms_stack_level_crosses(const ms_stack *stack,
                            const ms_record_without *without, const ms_box *box)
{
    double lowest = INFINITY, highest = 0.0;
    for (uint32_t i = 0; i < without->n; i++) {
        uint64_t to_ns =
            i + 1 < without->n ? without->levels[i + 1].t_ns : without->end_ns;
        if (ms_stack_x(stack, (double)without->levels[i].t_ns) > box->x1 ||
            ms_stack_x(stack, (double)to_ns) < box->x0)
            continue;
        double y = ms_stack_y(stack, bounded(stack, without->levels[i].bytes));
        lowest = fmin(lowest, y);
        highest = fmax(highest, y);
    }
    return lowest <= highest && lowest < box->y1 && highest > box->y0;
}

/* ---- hatch --------------------------------------------------------------- */

/* A stroke in px from the lower left corner of the area: from (x0, x0 - at)
 * to (x1, x1 - at). */
struct stroke {
    double at, x0, x1;
};

static void put_end(const ms_stack *stack, double x, double y, ms_text *script)
{
    double width = stack->area.x1 - stack->area.x0;
    double height = stack->area.y1 - stack->area.y0;
    double bytes =
        stack->base_bytes + y / height * (stack->top_bytes - stack->base_bytes);
    put_vertex(stack, x / width * (double)stack->end_ns, bytes, script);
}

static void flush(const ms_stack *stack, const struct stroke *stroke,
                  ms_text *script)
{
    if (stroke->x1 - stroke->x0 < LEAST_PX)
        return;
    put_end(stack, stroke->x0, stroke->x0 - stroke->at, script);
    put_end(stack, stroke->x1, stroke->x1 - stroke->at, script);
    ms_text_put(script, "\n", 1);
}

/* Cuts the diagonal y = x - at to where line_px < y < level. */
static void hatch_along(const ms_stack *stack, double at, double line_px,
                        ms_text *script)
{
    struct stroke open = {at, 0.0, 0.0};
    for (uint32_t i = 0; i < stack->n; i++) {
        const ms_point *point = &stack->points[i];
        double level =
            stack->area.y1 - ms_stack_y(stack, (double)point->total_bytes);
        double x0 = ms_stack_x(stack, (double)point->t_ns) - stack->area.x0;
        double x1 = ms_stack_x(stack, point_end_ns(stack, i)) - stack->area.x0;
        x0 = fmax(x0, at + line_px);
        x1 = fmin(x1, at + level);
        if (x0 >= x1)
            continue;
        if (x0 > open.x1) {
            flush(stack, &open, script);
            open.x0 = x0;
        }
        open.x1 = x1;
    }
    flush(stack, &open, script);
}

void ms_stack_write_hatch(const ms_stack *stack, double line_bytes,
                          ms_text *script)
{
    double line_px = stack->area.y1 - ms_stack_y(stack, line_bytes);
    double width = stack->area.x1 - stack->area.x0;
    double height = stack->area.y1 - stack->area.y0;
    ms_text_add(script, "$over << EOD\n");
    for (double at = -height; at < width; at += HATCH_PX)
        hatch_along(stack, at, line_px, script);
    ms_text_add(script, "EOD\n");
}
