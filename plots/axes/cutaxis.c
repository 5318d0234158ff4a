/* SPDX-License-Identifier: GPL-3.0-or-later */

#include <math.h>

#include "plots/axes/axes.h"
#include "plots/axes/cutaxis.h"
#include "plots/axes/frame.h"
#include "plots/axes/panel.h"
#include "plots/axes/units.h"
#include "plots/gnuplot/canvas.h"
#include "plots/gnuplot/wrap.h"
#include "plots/record/stack.h"

/* Shares of the highest level: the axis is cut where the lowest level is more
 * than MOST; a capacity line below FAR is left out; changes of less than
 * LEAST_SPAN are not magnified. */
#define MOST 0.6
#define FAR 0.25
#define LEAST_SPAN 0.02

#define BELOW 0.12    /* of the span: from the lowest level to the foot */
#define BREAK_PX 16.0 /* the axis goes on so far below the foot */
#define LINE_PX 25.0
#define TOOTH_PX 8.0 /* of the torn edge, up and sideways */

/* ---- where the axis begins ----------------------------------------------- */

/* The lowest level of the step, or the capacity line if it is lower and near.
 */
static double lowest_of(const ms_panel *panel, double highest)
{
    double lowest = highest, usable = (double)panel->usable_bytes;
    for (uint32_t i = 0; i < panel->stack.n; i++)
        lowest = fmin(lowest, (double)panel->stack.points[i].total_bytes);
    for (uint32_t i = 0; panel->without != NULL && i < panel->without->n; i++)
        lowest = fmin(lowest, (double)panel->without->levels[i].bytes);
    if (panel->shows_line && usable >= highest * FAR)
        lowest = fmin(lowest, usable);
    return lowest;
}

double ms_cutaxis_top(const ms_panel *panel, double base, double highest)
{
    double height = panel->area.y1 - panel->area.y0;
    return base + (highest - base) / (1.0 - panel->head_room / height);
}

/* The axis begins at a round number, a multiple of the distance of the ticks,
 * which depends on where it begins.  The distance only grows from try to try,
 * so that this ends. */
bool ms_cutaxis_find(ms_panel *panel, double highest)
{
    ms_stack *stack = &panel->stack;
    double lowest = lowest_of(panel, highest), needed = 0.0;
    double unit = (double)stack->bytes_unit->size;
    double span = fmax(highest - lowest, highest * LEAST_SPAN);
    if (stack->n == 0 || lowest <= highest * MOST)
        return false;
    panel->step = ms_axes_step(panel, span);
    do {
        double step = fmax(needed, panel->step);
        double below = (lowest - span * BELOW) / unit;
        panel->step = step;
        stack->base_bytes = floor(below / step) * step * unit;
        needed = ms_axes_step(
            panel, ms_cutaxis_top(panel, stack->base_bytes, highest) -
                       stack->base_bytes);
    } while (needed > panel->step);
    return stack->base_bytes > 0.0;
}

/* ---- words --------------------------------------------------------------- */

/* "parameters, optimizer state": what the stack has below its base. */
static void name_below(const ms_panel *panel, const ms_category *order,
                       uint32_t n, ms_text *text)
{
    const ms_stack *stack = &panel->stack;
    const char *before = "";
    for (uint32_t k = 0; k < n; k++) {
        bool is_below = false;
        for (uint32_t i = 0; i < stack->n; i++) {
            uint64_t under = 0;
            for (uint32_t j = 0; j < k; j++)
                under += stack->points[i].bytes[order[j]];
            is_below |= stack->points[i].bytes[order[k]] > 0 &&
                        (double)under < stack->base_bytes;
        }
        if (!is_below)
            continue;
        ms_text_add(text, "%s", before);
        for (const char *c = ms_names_category[order[k]]; *c != '\0'; c++)
            ms_text_put(text, *c == '_' ? " " : c, 1);
        before = ", ";
    }
}

/* In lines: *lines has n_lines of them. */
static const char **find_words(const ms_panel *panel, const ms_category *order,
                               uint32_t n, uint32_t *n_lines)
{
    const ms_stack *stack = &panel->stack;
    ms_text text = {.arena = panel->arena};
    double width = panel->area.x1 - panel->area.x0 - 12.0;
    ms_text_add(&text, "the axis starts at ");
    ms_text_double(&text, stack->base_bytes / (double)stack->bytes_unit->size);
    ms_text_add(&text, " %s; below it: ", stack->bytes_unit->name);
    name_below(panel, order, n, &text);
    const char **lines =
        ms_wrap_lines(ms_axes_words(panel, &text), MS_TEXT_PX, false,
                      width / MS_FRAME_SLACK, panel->arena, n_lines);
    panel->script->failed |= lines == NULL;
    return lines;
}

double ms_cutaxis_height(const ms_panel *panel, const ms_category *order,
                         uint32_t n)
{
    uint32_t n_lines = 0;
    if (panel->stack.base_bytes <= 0.0 ||
        find_words(panel, order, n, &n_lines) == NULL)
        return 0.0;
    return BREAK_PX + LINE_PX * (n_lines + panel->is_below);
}

static const char *name_capacity(const ms_panel *panel)
{
    ms_text text = {.arena = panel->arena};
    bool is_far = (double)panel->usable_bytes < panel->stack.base_bytes * FAR;
    ms_text_add(&text, "↓ capacity ");
    ms_units_put_bytes(&text, panel->capacity_bytes,
                       ms_units_bytes(panel->capacity_bytes));
    ms_text_add(&text, "%s: all that is drawn exceeds it",
                is_far ? ", far below" : ", below");
    return ms_axes_words(panel, &text);
}

/* ---- the script ---------------------------------------------------------- */

/* Two strokes across what is left of the axis below its foot. */
static void put_break(ms_panel *panel)
{
    double x = panel->area.x0, y = panel->area.y1;
    ms_axes_line(panel, x, y, x, y + BREAK_PX, MS_FRAME_AXIS, true);
    for (int i = 0; i < 2; i++, y += 4.5)
        ms_canvas_line(panel->script,
                       &(ms_box){x - 7.0, y + 9.0, x + 7.0, y + 4.0}, 1.4,
                       MS_FRAME_AXIS, true);
}

void ms_cutaxis_draw(ms_panel *panel, const ms_category *order, uint32_t n)
{
    ms_type type = {.size_px = MS_TEXT_PX, .color = MS_INK, .align = MS_LEFT};
    double x = panel->area.x0 + 6.0,
           y = panel->area.y1 + BREAK_PX + LINE_PX / 2;
    double width = panel->area.x1 - panel->area.x0 - 12.0;
    uint32_t n_lines = 0;
    if (panel->stack.base_bytes <= 0.0)
        return;
    const char **lines = find_words(panel, order, n, &n_lines);
    for (uint32_t i = 0; lines != NULL && i < n_lines; i++, y += LINE_PX)
        ms_canvas_text(panel->script, lines[i], x, y, &type, width);
    type.color = MS_FRAME_RED;
    if (panel->is_below)
        ms_canvas_text(panel->script, name_capacity(panel), x, y, &type, width);
    put_break(panel);
}

/* Teeth along the foot, from one side of the areas to the other. */
void ms_cutaxis_write(const ms_panel *panel)
{
    const ms_stack *stack = &panel->stack;
    const ms_box *area = &panel->area;
    double unit = (double)stack->bytes_unit->size;
    double end = (double)stack->end_ns / (double)stack->time_unit->size;
    double per_px =
        (stack->top_bytes - stack->base_bytes) / (area->y1 - area->y0) / unit;
    int n = (int)((area->x1 - area->x0) / TOOTH_PX);
    ms_text_add(panel->script, "base = ");
    ms_text_double(panel->script, stack->base_bytes / unit);
    ms_text_add(panel->script, "\n");
    if (stack->base_bytes <= 0.0)
        return;
    ms_text_add(panel->script, "$torn << EOD\n");
    for (int i = 0; i <= n; i++) {
        double up_px = i % 2 == 0 ? 0.0 : TOOTH_PX;
        ms_text_double(panel->script, end * i / n);
        ms_text_put(panel->script, " ", 1);
        ms_text_double(panel->script,
                       stack->base_bytes / unit + up_px * per_px);
        ms_text_put(panel->script, "\n", 1);
    }
    ms_text_add(panel->script, "EOD\n");
}

void ms_cutaxis_plot(const ms_panel *panel)
{
    if (panel->stack.base_bytes > 0.0)
        ms_text_add(panel->script,
                    ", \\\n  $torn using 1:2 with filledcurves y1=base "
                    "linecolor rgb '#FFFFFF' notitle");
}
