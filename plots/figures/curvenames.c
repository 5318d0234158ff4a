/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The names of a curve's lines, beside the plot where the lines end. */

#include <math.h>

#include "plots/axes/frame.h"
#include "plots/figures/curve.h"
#include "plots/gnuplot/canvas.h"
#include "plots/gnuplot/wrap.h"
#include "plots/plots.h"
#include "sim/report.h"

#define SIDE_PX 245.0
#define WIDE_SIDE_PX 310.0 /* where a name would take more than FEW_LINES */
#define FEW_LINES 3u
#define LINE_PX 22.0
#define BETWEEN_NAMES_PX 6.0
#define SIGN_X_PX 20.0
#define LEADER "#9A9A9A"

/* ---- lines of text ------------------------------------------------------- */

/* Breaks the names, then returns the width of the widest. */
static double break_names(ms_lineup *c, double limit)
{
    double most = 0.0;
    for (uint32_t s = 0; s < c->curves->n; s++) {
        c->lines[s] = ms_wrap_lines(c->curves->series[s].name, MS_TEXT_PX,
                                    false, limit / MS_FRAME_SLACK,
                                    c->frame.script->arena, &c->n_lines[s]);
        c->frame.script->failed |= c->lines[s] == NULL;
        c->n_lines[s] = c->lines[s] != NULL ? c->n_lines[s] : 0;
        most = fmax(
            most, ms_wrap_width(c->lines[s], c->n_lines[s], MS_TEXT_PX, false));
    }
    return fmin(most * MS_FRAME_SLACK, limit);
}

double ms_curvenames_width(ms_lineup *c)
{
    uint32_t most = 0;
    if (c->curves->n < 2)
        return 0.0;
    double width = break_names(c, SIDE_PX);
    for (uint32_t s = 0; s < c->curves->n; s++)
        most = c->n_lines[s] > most ? c->n_lines[s] : most;
    return most > FEW_LINES ? break_names(c, WIDE_SIDE_PX) : width;
}

double ms_curvenames_height(const ms_lineup *c, uint32_t s)
{
    return c->n_lines[s] * LINE_PX + BETWEEN_NAMES_PX;
}

/* ---- where they stand ---------------------------------------------------- */

/* Where a line ends: its last point. */
static bool end_of(const ms_lineup *c, uint32_t s, double *x, double *y)
{
    const ms_series *series = &c->curves->series[s];
    *x = c->frame.area.x1;
    *y = c->frame.area.y1;
    for (uint32_t i = series->n; i-- > 0;)
        if (series->y[i] != MS_NO_LEVEL) {
            *x = ms_scale_px(&c->x, series->x[i]);
            *y = ms_scale_px(&c->y, (double)series->y[i]);
            return true;
        }
    return false;
}

/* Insertion sort by height: there are few names, and names of equal height keep
 * their order. */
static void order_names(ms_lineup *c)
{
    for (uint32_t s = c->first; s < c->end; s++) {
        uint32_t at = s;
        double x;
        end_of(c, s, &x, &c->name_y[s]);
        for (; at > c->first && c->name_y[c->order[at - 1]] > c->name_y[s];
             at--)
            c->order[at] = c->order[at - 1];
        c->order[at] = s;
    }
}

/* The least distance between the middles of a name and of the one above it. */
static double apart(const ms_lineup *c, uint32_t i)
{
    return (ms_curvenames_height(c, c->order[i]) +
            ms_curvenames_height(c, c->order[i - 1])) /
           2;
}

/* Two passes: names are pushed down until none overlaps the one above it, then
 * those below the area are pushed up again, with the ones above them. */
static void spread_names(ms_lineup *c)
{
    double top = c->frame.area.y0, low = c->frame.area.y1;
    for (uint32_t i = c->first; i < c->end; i++) {
        double least =
            i > c->first
                ? c->name_y[c->order[i - 1]] + apart(c, i)
                : top + ms_curvenames_height(c, c->order[i]) / 2 - LINE_PX / 2;
        c->name_y[c->order[i]] = fmax(c->name_y[c->order[i]], least);
    }
    low -= c->end > c->first ? ms_curvenames_height(c, c->order[c->end - 1]) / 2
                             : 0.0;
    for (uint32_t i = c->end; i-- > c->first;) {
        c->name_y[c->order[i]] = fmin(c->name_y[c->order[i]], low);
        if (i > c->first)
            low = c->name_y[c->order[i]] - apart(c, i);
    }
}

/* From the line's end to the sign of its name, where that is not beside it. */
static void put_leader(const ms_lineup *c, uint32_t s)
{
    double x, y, to_x = c->frame.area.x1 + SIGN_X_PX - MS_CURVE_RADIUS_PX - 3.0;
    if (!end_of(c, s, &x, &y))
        return;
    ms_canvas_line(
        c->frame.script,
        &(ms_box){x + MS_CURVE_RADIUS_PX + 2.0, y, to_x, c->name_y[s]}, 0.8,
        LEADER, false);
}

static void put_name(const ms_lineup *c, uint32_t s)
{
    double x = c->frame.area.x1 + MS_CURVENAMES_X_PX;
    double y = c->name_y[s] - LINE_PX * (c->n_lines[s] - 1.0) / 2;
    ms_marks_object(c->frame.script, &c->marks[s], c->frame.area.x1 + SIGN_X_PX,
                    c->name_y[s], MS_CURVE_RADIUS_PX);
    for (uint32_t i = 0; i < c->n_lines[s]; i++)
        ms_frame_text(&c->frame, c->lines[s][i], x, y + LINE_PX * i, MS_LEFT,
                      ms_marks_hue(&c->marks[s]), MS_FRAME_RIGHT - x + 1.0);
}

void ms_curvenames_put(ms_lineup *c)
{
    if (!c->has_side)
        return;
    order_names(c);
    spread_names(c);
    for (uint32_t s = c->first; s < c->end; s++) {
        put_leader(c, s);
        put_name(c, s);
    }
}
