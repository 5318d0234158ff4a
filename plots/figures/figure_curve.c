/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A number against a swept parameter.  Each series has a sign and a colour of
 * its own, and its name stands where its line ends.  More lines than a reader
 * can follow are in panels, one under another on the same scales. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plots/axes/frame.h"
#include "plots/axes/units.h"
#include "plots/figures/curve.h"
#include "plots/gnuplot/canvas.h"
#include "plots/gnuplot/escape.h"
#include "plots/plots.h"
#include "sim/report.h"

/* Below the last panel stand ticks and, at NAME_Y_PX, the axis' name; words
 * that stand upright take at most WORDS_PX more. */
#define AREA_PX 380.0
#define PANEL_PX 280.0 /* of each panel of several */
#define BETWEEN_PX 26.0
#define NAME_Y_PX 50.0
#define BELOW_PX 76.0
#define WORD_PITCH_PX 24.0 /* words that would lie nearer are left out */
#define WORDS_PX 280.0
#define EDGE_PX 26.0 /* from the y axis to the first point */
#define TICK_GAP_PX 12.0
#define MOST_TICKS 24u
#define HEAD_ROOM 1.06
/* A capacity beyond so many times the highest value is only named. */
#define FAR_CAPACITY 2.0

/* ---- what there is ------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void find_marks(ms_lineup *c)
{
    ms_sign_name names[MS_CURVES_MOST];
    for (uint32_t s = 0; s < c->curves->n; s++)
        names[s] = (ms_sign_name){c->curves->series[s].family,
                                  c->curves->series[s].name};
    ms_marks_assign(names, c->curves->n, c->marks);
}

static void find_limits(ms_lineup *c)
{
    c->lowest_limit = UINT64_MAX;
    if (c->curves->is_time)
        return;
    for (uint32_t l = 0; l < c->curves->n_limits; l++)
        for (uint32_t i = 0; i < c->curves->limits[l].n; i++) {
            uint64_t y = c->curves->limits[l].y[i];
            if (y < c->lowest_limit)
                c->lowest_limit = y;
            if (y > c->highest_limit)
                c->highest_limit = y;
        }
    c->shows_limits =
        c->highest_limit > 0 &&
        (double)c->lowest_limit <= (double)c->highest * FAR_CAPACITY;
}

/* Ticks stand at the values of all series together, sorted and each once; a
 * value without a level is a gap in its line, but has its tick. */
static ms_err load(ms_lineup *c, ms_fault *fault)
{
    const ms_curves *curves = c->curves;
    uint32_t all = 0, n = 0;
    for (uint32_t s = 0; s < curves->n; s++)
        all += curves->series[s].n;
    c->xs = ms_arena_take_raw(c->frame.script->arena, all + 1, sizeof *c->xs);
    if (c->xs == NULL)
        return ms_fail_nomem(fault);
    all = 0;
    for (uint32_t s = 0; s < curves->n; s++)
        for (uint32_t i = 0; i < curves->series[s].n; i++) {
            const ms_series *series = &curves->series[s];
            c->xs[all++] = series->x[i];
            if (series->y[i] == MS_NO_LEVEL) {
                c->has_gaps = true;
                continue;
            }
            n++;
            if (series->y[i] > c->highest)
                c->highest = series->y[i];
            c->has_hollow |= series->fits != NULL && !series->fits[i];
        }
    if (n == 0)
        return ms_fail(fault, MS_EINPUT, NULL,
                       "a refused point says why in its \"message\"",
                       "no point has numbers: there is nothing to draw");
    qsort(c->xs, all, sizeof *c->xs, ascending);
    for (uint32_t i = 0; i < all; i++)
        if (i == 0 || c->xs[i] > c->xs[c->n_xs - 1])
            c->xs[c->n_xs++] = c->xs[i];
    find_marks(c);
    find_limits(c);
    return MS_OK;
}

/* Are there three values or more, each at least half as large again as the one
 * before, over a wide range?  On a linear axis the small ones would lie
 * together. */
static bool is_geometric(const ms_lineup *c)
{
    if (c->curves->x_words != NULL || c->n_xs < 3 || c->xs[0] <= 0.0)
        return false;
    for (uint32_t i = 1; i < c->n_xs; i++)
        if (c->xs[i] < c->xs[i - 1] * 1.5)
            return false;
    return c->xs[c->n_xs - 1] >= c->xs[0] * 4.0;
}

/* ---- where it lies ------------------------------------------------------- */

/* Divides the series into panels so that the names of each have room. */
static void find_panels(ms_lineup *c)
{
    uint32_t n = c->curves->n;
    c->n_panels = (n + MS_CURVES_PANEL - 1) / MS_CURVES_PANEL;
    c->per_panel = (n + c->n_panels - 1) / c->n_panels;
    c->panel_px = c->n_panels > 1 ? PANEL_PX : AREA_PX;
    for (uint32_t p = 0; p < c->n_panels && c->has_side; p++) {
        double need = 0.0;
        for (uint32_t s = p * c->per_panel; s < (p + 1) * c->per_panel && s < n;
             s++)
            need += ms_curvenames_height(c, s);
        c->panel_px = fmax(c->panel_px, ceil(need));
    }
}

static double widest_word(const ms_lineup *c)
{
    double most = 0.0;
    for (uint32_t i = 0; i < c->curves->n_words; i++)
        most = fmax(most,
                    ms_escape_width(c->curves->x_words[i], MS_TEXT_PX, false));
    return most * MS_FRAME_SLACK;
}

static void set_scales(ms_lineup *c)
{
    const ms_box *area = &c->frame.area;
    double first = c->xs[0], last = c->xs[c->n_xs - 1];
    double highest = (double)c->highest;
    if (c->shows_limits && (double)c->highest_limit <= highest * FAR_CAPACITY)
        highest = fmax(highest, (double)c->highest_limit);
    if (c->curves->x_words != NULL)
        first = 0.0, last = c->curves->n_words - 1.0;
    if (last <= first)
        first -= 0.5, last += 0.5;
    c->x = (ms_scale){first, last, area->x0 + EDGE_PX, area->x1 - EDGE_PX,
                      is_geometric(c)};
    if (highest <= 0.0)
        highest = 1.0;
    c->y = (ms_scale){0.0, highest * HEAD_ROOM, area->y1, area->y0, false};
    c->unit = c->curves->is_time ? ms_units_time((uint64_t)highest)
                                 : ms_units_bytes((uint64_t)highest);
}

static const char *note_of(const ms_lineup *c)
{
    ms_text note = {.arena = c->frame.script->arena};
    if (c->has_hollow)
        ms_text_add(&note, "hollow: does not fit");
    if (c->has_gaps)
        ms_text_add(&note, "%sgaps: no result", c->has_hollow ? "; " : "");
    if (c->highest_limit > 0 && !c->shows_limits)
        ms_text_add(&note, "%sall below %s", note.length > 0 ? "; " : "",
                    c->curves->limits[0].name);
    return ms_frame_bytes_of(&c->frame, &note);
}

/* Makes a panel the area of what is drawn next. */
static void open_panel(ms_lineup *c, const ms_box *all, uint32_t panel)
{
    double y = all->y0 + panel * (c->panel_px + BETWEEN_PX);
    c->frame.area = (ms_box){all->x0, y, all->x1, y + c->panel_px};
    c->first = panel * c->per_panel;
    c->end = c->first + c->per_panel;
    if (c->end > c->curves->n)
        c->end = c->curves->n;
    c->y.px_from = c->frame.area.y1;
    c->y.px_to = c->frame.area.y0;
}

/* ---- capacity ------------------------------------------------------------ */

#define LIMIT_ROW_PX 24.0
#define PLACES 9  /* places along the line that are tried */
#define PIECES 24 /* pieces of a line from which a label keeps away */

static bool is_near(const ms_box *box, double x, double y)
{
    return x > box->x0 - 12.0 && x < box->x1 + 12.0 && y > box->y0 - 8.0 &&
           y < box->y1 + 8.0;
}

/* How many pieces of all lines lie in the box, or near it. */
static uint32_t pieces_in(const ms_lineup *c, const ms_box *box)
{
    uint32_t n = 0;
    for (uint32_t s = c->first; s < c->end; s++) {
        const ms_series *series = &c->curves->series[s];
        double x0 = NAN, y0 = NAN;
        for (uint32_t i = 0; i < series->n; i++) {
            if (series->y[i] == MS_NO_LEVEL)
                continue;
            double x = ms_scale_px(&c->x, series->x[i]);
            double y = ms_scale_px(&c->y, (double)series->y[i]);
            for (int k = 0; k < PIECES && !isnan(x0); k++)
                n += is_near(box, x0 + (x - x0) * k / PIECES,
                             y0 + (y - y0) * k / PIECES);
            n += 8u * is_near(box, x, y);
            x0 = x, y0 = y;
        }
    }
    return n;
}

static double limit_y(const ms_lineup *c, const ms_series *limit, uint32_t i)
{
    return ms_scale_px(&c->y, (double)limit->y[i]);
}

/* Finds room for a limit's name on its line or under it, from the right to the
 * left, where no other line runs. */
static bool find_room(const ms_lineup *c, const ms_series *limit, ms_box *best)
{
    double width =
        ms_escape_width(limit->name, MS_TEXT_PX, false) * MS_FRAME_SLACK;
    double y = limit_y(c, limit, limit->n - 1);
    const ms_box *area = &c->frame.area;
    double from = area->x0 + 8.0, to = fmax(area->x1 - 8.0 - width, from);
    for (int i = 0; i < 2 * PLACES && limit->n == 1; i++) {
        int place = i / 2; /* each place is tried on the line and under it */
        double x0 = to - (to - from) * place / (PLACES - 1);
        double y0 = i % 2 == 0 ? y - 25.0 : y + 3.0;
        ms_box box = {x0, y0, x0 + width, y0 + 22.0};
        if (y0 < area->y0 - 30.0 || y0 + 22.0 > area->y1 ||
            pieces_in(c, &box) > 0)
            continue;
        *best = box;
        return true;
    }
    return false;
}

/* Puts the line of a limit from point to point; a single point has a line all
 * along the axis. */
static void put_limit_line(const ms_lineup *c, const ms_series *limit)
{
    const ms_box *area = &c->frame.area;
    double x = area->x0, y = limit_y(c, limit, 0);
    for (uint32_t i = 0; i <= limit->n; i++) {
        bool is_end = i == limit->n;
        double to_x = is_end ? area->x1 : ms_scale_px(&c->x, limit->x[i]);
        double to_y = limit_y(c, limit, is_end ? limit->n - 1 : i);
        if (limit->n > 1 || is_end)
            ms_canvas_line(c->frame.script, &(ms_box){x, y, to_x, to_y}, 1.6,
                           MS_FRAME_RED, false);
        if (limit->n > 1)
            x = to_x, y = to_y;
    }
}

/* Does the name of the capacity have room in each panel?  Otherwise, and where
 * there are several, the names stand above the first. */
static bool have_room(ms_lineup *c)
{
    const ms_box all = c->frame.area;
    ms_box box;
    bool have = c->curves->n_limits == 1;
    for (uint32_t panel = 0; panel < c->n_panels && have; panel++) {
        open_panel(c, &all, panel);
        have = find_room(c, &c->curves->limits[0], &box);
    }
    c->frame.area = all;
    return have;
}

/* Writes the capacities above the first panel, where they have no room in it.
 */
static void name_limits(const ms_lineup *c)
{
    for (uint32_t l = 0; l < c->curves->n_limits && c->first == 0; l++)
        ms_frame_text(&c->frame, c->curves->limits[l].name, c->frame.area.x0,
                      c->frame.area.y0 - LIMIT_ROW_PX * (l + 0.6), MS_LEFT,
                      MS_FRAME_RED, MS_FRAME_RIGHT - c->frame.area.x0);
}

static void put_limits(const ms_lineup *c)
{
    for (uint32_t l = 0; l < c->curves->n_limits && c->shows_limits; l++) {
        const ms_series *limit = &c->curves->limits[l];
        ms_box box;
        put_limit_line(c, limit);
        if (!c->limits_above && find_room(c, limit, &box))
            ms_frame_text(&c->frame, limit->name, box.x0, (box.y0 + box.y1) / 2,
                          MS_LEFT, MS_FRAME_RED, box.x1 - box.x0);
    }
    if (c->limits_above)
        name_limits(c);
}

/* ---- all of it ----------------------------------------------------------- */

static double place(ms_lineup *c)
{
    ms_frame *frame = &c->frame;
    const ms_curves *curves = c->curves;
    double side = ms_curvenames_width(c);
    c->has_side = side > 0.0;
    find_panels(c);
    double right = c->has_side ? MS_FRAME_RIGHT - side - MS_CURVENAMES_X_PX
                               : MS_FRAME_RIGHT - 14.0;
    double all = c->n_panels * (c->panel_px + BETWEEN_PX) - BETWEEN_PX;
    frame->area = (ms_box){84.0, 0.0, right, all};
    double parts = fmax(curves->n_words - 1.0, 1.0);
    double pitch = (right - 84.0 - 2.0 * EDGE_PX) / parts;
    double word = curves->x_words != NULL ? widest_word(c) : 0.0;
    if (word + TICK_GAP_PX > pitch)
        c->words_px = fmin(word, WORDS_PX);
    set_scales(c);
    c->limits_above = c->shows_limits && !have_room(c);
    ms_frame_heading(frame, note_of(c));
    double top = ceil(frame->y + 14.0);
    if (c->limits_above)
        top += LIMIT_ROW_PX * c->curves->n_limits;
    frame->area = (ms_box){84.0, top, right, top + all};
    return frame->area.y1 + BELOW_PX + fmax(c->words_px - 20.0, 0.0);
}

/* ---- axes ---------------------------------------------------------------- */

static const char *number_of(const ms_lineup *c, double value)
{
    ms_text text = {.arena = c->frame.script->arena};
    ms_text_double(&text, value);
    return ms_frame_bytes_of(&c->frame, &text);
}

/* Is there room for a tick at each value?  Otherwise the ticks are those of the
 * scale. */
static bool has_room(const ms_lineup *c)
{
    double end = -INFINITY;
    for (uint32_t i = 0; i < c->n_xs; i++) {
        double x = ms_scale_px(&c->x, c->xs[i]);
        double half =
            ms_escape_width(number_of(c, c->xs[i]), MS_TEXT_PX, false) / 2.0 *
            MS_FRAME_SLACK;
        if (i >= MOST_TICKS || x - half < end + TICK_GAP_PX)
            return false;
        end = x + half;
    }
    return true;
}

static bool is_last_panel(const ms_lineup *c)
{
    return c->end == c->curves->n;
}

static void put_tick(const ms_lineup *c, double value, const char *word,
                     double limit_px)
{
    double x = ms_scale_px(&c->x, value);
    const ms_box *area = &c->frame.area;
    ms_frame_line(&c->frame, x, area->y0, x, area->y1, MS_FRAME_GRID, false);
    if (is_last_panel(c))
        ms_frame_x_tick(&c->frame, x, word, limit_px, c->words_px > 0.0);
}

static void put_x_axis(const ms_lineup *c)
{
    const ms_curves *curves = c->curves;
    const ms_box *area = &c->frame.area;
    double parts = fmax(curves->n_words - 1.0, 1.0);
    double pitch = (area->x1 - area->x0 - 2.0 * EDGE_PX) / parts;
    double most = (area->x1 - area->x0) / 84.0;
    uint32_t every = (uint32_t)ceil(WORD_PITCH_PX / fmax(pitch, 1.0));
    double ticks[MS_SCALE_TICKS];
    bool all = curves->x_words == NULL && has_room(c);
    uint32_t n = curves->x_words != NULL || all
                     ? 0
                     : ms_scale_ticks(&c->x, 1.0, (uint32_t)most, ticks);
    for (uint32_t i = 0; i < curves->n_words && curves->x_words; i += every)
        put_tick(c, i, curves->x_words[i],
                 c->words_px > 0.0 ? WORDS_PX : pitch);
    for (uint32_t i = 0; i < c->n_xs && all; i++)
        put_tick(c, c->xs[i], number_of(c, c->xs[i]), 160.0);
    for (uint32_t i = 0; i < n; i++)
        put_tick(c, ticks[i], number_of(c, ticks[i]), 160.0);
    ms_text name = {.arena = c->frame.script->arena};
    ms_text_add(&name, "%s%s", curves->x_name,
                c->x.is_log ? " (log scale)" : "");
    ms_frame_x_name(&c->frame,
                    is_last_panel(c) ? ms_frame_bytes_of(&c->frame, &name) : "",
                    area->y1 + NAME_Y_PX + fmax(c->words_px - 20.0, 0.0));
}

static const char *y_name(const ms_lineup *c, bool per_gpu)
{
    ms_text name = {.arena = c->frame.script->arena};
    ms_text_add(&name, "%s%s (%s)", c->curves->y_name,
                per_gpu ? " per GPU" : "", c->unit->name);
    return ms_frame_bytes_of(&c->frame, &name);
}

static void put_axes(const ms_lineup *c)
{
    bool per_gpu = c->frame.drawing->per_gpu && !c->curves->is_time;
    const char *name = y_name(c, per_gpu);
    put_x_axis(c);
    if (ms_escape_width(name, MS_TEXT_PX, false) > c->panel_px)
        name = y_name(c, false); /* the title says it */
    ms_frame_y_axis(&c->frame, &c->y, (double)c->unit->size, name);
}

/* ---- data ---------------------------------------------------------------- */

static void block_name(char name[16], char kind, uint32_t s)
{
    const char letters[] = {kind, '_', (char)('a' + s / MS_CURVES_PANEL),
                            (char)('a' + s % MS_CURVES_PANEL), '\0'};
    strcpy(name, letters);
}

static void put_line(const ms_lineup *c, uint32_t s)
{
    const ms_series *series = &c->curves->series[s];
    char name[16];
    block_name(name, 'l', s);
    ms_text_add(c->frame.script, "$%s << EOD\n", name);
    for (uint32_t i = 0; i < series->n; i++)
        if (series->y[i] == MS_NO_LEVEL)
            ms_text_add(c->frame.script, "\n");
        else
            ms_canvas_point(c->frame.script, ms_scale_px(&c->x, series->x[i]),
                            ms_scale_px(&c->y, (double)series->y[i]));
    ms_text_add(c->frame.script, "EOD\n");
}

/* Puts the signs of a series that are filled, or those that are hollow; false
 * where there are none. */
static bool put_signs(const ms_lineup *c, uint32_t s, bool filled)
{
    const ms_series *series = &c->curves->series[s];
    bool any = false;
    char name[16];
    double radius = c->n_xs > 40 ? MS_CURVE_RADIUS_PX / 2 : MS_CURVE_RADIUS_PX;
    block_name(name, filled ? 'f' : 'h', s);
    for (uint32_t i = 0; i < series->n; i++) {
        bool fits = series->fits == NULL || series->fits[i];
        if (series->y[i] == MS_NO_LEVEL || fits != filled)
            continue;
        if (!any)
            ms_text_add(c->frame.script, "$%s << EOD\n", name);
        any = true;
        ms_marks_write(c->frame.script, &c->marks[s],
                       ms_scale_px(&c->x, series->x[i]),
                       ms_scale_px(&c->y, (double)series->y[i]), radius);
    }
    if (any)
        ms_text_add(c->frame.script, "EOD\n");
    return any;
}

static void put_blocks(const ms_lineup *c, bool any[MS_CURVES_MOST][2])
{
    for (uint32_t s = c->first; s < c->end; s++) {
        put_line(c, s);
        any[s][0] = put_signs(c, s, false);
        any[s][1] = put_signs(c, s, true);
    }
}

static void put_plot(ms_lineup *c, bool any[MS_CURVES_MOST][2])
{
    ms_text *script = c->frame.script;
    char name[16];
    ms_frame_open_plot(&c->frame);
    for (uint32_t s = 0; s < c->curves->n; s++) {
        block_name(name, 'l', s);
        ms_text_add(script,
                    ", \\\n  $%s using 1:2 with lines linewidth 1.8 "
                    "dashtype %u linecolor rgb '%s' notitle",
                    name, ms_marks_dash(&c->marks[s]),
                    ms_marks_color(&c->marks[s]));
    }
    for (uint32_t s = 0; s < c->curves->n; s++)
        for (int filled = 0; filled < 2; filled++) {
            block_name(name, filled ? 'f' : 'h', s);
            if (any[s][filled])
                ms_marks_plot(script, name, &c->marks[s], filled == 1, false);
        }
    ms_text_add(script, "\n");
}

static void draw(ms_lineup *c)
{
    bool any[MS_CURVES_MOST][2];
    const ms_box all = c->frame.area;
    for (uint32_t panel = 0; panel < c->n_panels; panel++) {
        open_panel(c, &all, panel);
        put_axes(c);
        put_limits(c);
        ms_curvenames_put(c);
        put_blocks(c, any);
    }
    c->frame.area = all;
    put_plot(c, any);
}

ms_err ms_figure_curve(const ms_curves *curves, const ms_drawing *drawing,
                       ms_fault *fault)
{
    ms_format format;
    ms_text script = {.arena = drawing->arena};
    ms_lineup c = {.curves = curves, .frame = ms_frame_of(drawing, &script)};
    MS_TRY(ms_gnuplot_format(drawing->path, &format, fault));
    if (curves->n > MS_CURVES_MOST)
        return ms_fail(fault, MS_EINPUT, NULL, NULL,
                       "%u lines are too many for one figure (at most %u)",
                       curves->n, MS_CURVES_MOST);
    MS_TRY(load(&c, fault));
    double height = ceil(place(&c));
    ms_frame_begin(&c.frame, format, height);
    draw(&c);
    return ms_gnuplot_draw(&script, format, drawing->path, drawing->script_path,
                           fault);
}
