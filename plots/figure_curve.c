/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A number against a swept parameter.  Each series has its sign and colour;
 * its name stands where its line ends, or, where names are long, above the
 * plot. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plots/frame.h"

/* Below the plot stand ticks and, at NAME_Y_PX, the axis' name; words that
 * stand upright take at most WORDS_PX more. */
#define AREA_PX 380.0
#define NAME_Y_PX 50.0
#define BELOW_PX 76.0
#define WORD_PITCH_PX 24.0 /* nearer ones are left out */
#define WORDS_PX 280.0
/* Names beside the plot: the most they take, and the height of one. */
#define SIDE_PX 235.0
#define ROW_PX 25.0
#define RADIUS_PX 7.0
#define EDGE_PX 26.0 /* from the y axis to the first point */
#define TICK_GAP_PX 12.0
#define MOST_TICKS 24u
#define HEAD_ROOM 1.06
/* Times the highest value: beyond it the capacity is only named. */
#define FAR_CAPACITY 2.0

struct curve {
    const ms_curves *curves;
    ms_frame frame;
    double *xs; /* all that occur, ascending */
    uint32_t n_xs;
    uint64_t highest;
    bool has_hollow, has_gaps, shows_capacity, has_side;
    ms_scale x, y;
    const ms_unit *unit; /* of y */
    double words_px;     /* that upright words of the x axis take; 0: none */
    uint32_t order[MS_CURVES_MOST]; /* the names beside the plot, downwards */
    double name_y[MS_CURVES_MOST];  /* of each series */
};

/* ---- what there is ------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static ms_err load(struct curve *c, ms_fault *fault)
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
        return ms_fail(fault, MS_EINPUT, NULL, NULL,
                       "there is nothing to draw");
    qsort(c->xs, all, sizeof *c->xs, ascending);
    for (uint32_t i = 0; i < all; i++)
        if (i == 0 || c->xs[i] > c->xs[c->n_xs - 1])
            c->xs[c->n_xs++] = c->xs[i];
    return MS_OK;
}

/* Three values or more, each at least half as large again as the one before,
 * over a wide range: on a linear axis the small ones would lie together. */
static bool is_geometric(const struct curve *c)
{
    if (c->curves->x_words != NULL || c->n_xs < 3 || c->xs[0] <= 0.0)
        return false;
    for (uint32_t i = 1; i < c->n_xs; i++)
        if (c->xs[i] < c->xs[i - 1] * 1.5)
            return false;
    return c->xs[c->n_xs - 1] >= c->xs[0] * 4.0;
}

/* ---- where it lies ------------------------------------------------------- */

/* Names stand beside the plot if the longest is short. */
static double side_of(const struct curve *c)
{
    double most = 0.0;
    for (uint32_t s = 0; s < c->curves->n && c->curves->n > 1; s++)
        most = fmax(most, ms_escape_width(c->curves->series[s].name, MS_TEXT_PX,
                                          false));
    return most * MS_FRAME_SLACK;
}

static double widest_word(const struct curve *c)
{
    double most = 0.0;
    for (uint32_t i = 0; i < c->curves->n_words; i++)
        most = fmax(most,
                    ms_escape_width(c->curves->x_words[i], MS_TEXT_PX, false));
    return most * MS_FRAME_SLACK;
}

static void set_scales(struct curve *c)
{
    const ms_box *area = &c->frame.area;
    double first = c->xs[0], last = c->xs[c->n_xs - 1];
    double usable = (double)c->curves->usable_bytes;
    double highest = (double)c->highest;
    c->shows_capacity =
        !c->curves->is_time && usable > 0.0 && usable <= highest * FAR_CAPACITY;
    if (c->shows_capacity)
        highest = fmax(highest, usable);
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

static const char *note_of(const struct curve *c)
{
    ms_text note = {.arena = c->frame.script->arena};
    if (c->has_hollow)
        ms_text_add(&note, "hollow: does not fit");
    if (c->has_gaps)
        ms_text_add(&note, "%sgaps: no result", c->has_hollow ? "; " : "");
    if (c->curves->usable_bytes > 0 && !c->shows_capacity &&
        !c->curves->is_time) {
        ms_text_add(&note, "%sall below ", note.length > 0 ? "; " : "");
        ms_frame_capacity(&note, c->curves->capacity_bytes,
                          c->curves->usable_bytes);
    }
    return ms_frame_bytes_of(&c->frame, &note);
}

static double place(struct curve *c)
{
    ms_frame *frame = &c->frame;
    const ms_curves *curves = c->curves;
    ms_frame_entry entries[MS_CURVES_MOST];
    double side = side_of(c);
    c->shows_capacity =
        !curves->is_time && curves->usable_bytes > 0 &&
        (double)curves->usable_bytes <= (double)c->highest * FAR_CAPACITY;
    c->has_side = side > 0.0 && side <= SIDE_PX;
    ms_frame_heading(frame, note_of(c));
    for (uint32_t s = 0; s < curves->n; s++)
        entries[s] = (ms_frame_entry){curves->series[s].name, s};
    ms_frame_legend(frame, entries,
                    curves->n > 1 && !c->has_side ? curves->n : 0);
    double top = ceil(frame->y + 14.0);
    double right =
        c->has_side ? MS_FRAME_RIGHT - side - 34.0 : MS_FRAME_RIGHT - 14.0;
    frame->area = (ms_box){84.0, top, right, top + AREA_PX};
    double parts = fmax(curves->n_words - 1.0, 1.0);
    double pitch = (right - 84.0 - 2.0 * EDGE_PX) / parts;
    double word = curves->x_words != NULL ? widest_word(c) : 0.0;
    if (word + TICK_GAP_PX > pitch)
        c->words_px = fmin(word, WORDS_PX);
    set_scales(c);
    return frame->area.y1 + BELOW_PX + fmax(c->words_px - 20.0, 0.0);
}

/* ---- axes ---------------------------------------------------------------- */

static const char *number_of(const struct curve *c, double value)
{
    ms_text text = {.arena = c->frame.script->arena};
    ms_text_double(&text, value);
    return ms_frame_bytes_of(&c->frame, &text);
}

/* Each value has a tick if there is room for all of them. */
static bool has_room(const struct curve *c)
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

static void put_tick(const struct curve *c, double value, const char *word,
                     double limit_px)
{
    double x = ms_scale_px(&c->x, value);
    const ms_box *area = &c->frame.area;
    ms_frame_line(&c->frame, x, area->y0, x, area->y1, MS_FRAME_GRID, false);
    ms_frame_x_tick(&c->frame, x, word, limit_px, c->words_px > 0.0);
}

static void put_x_axis(const struct curve *c)
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
    ms_frame_x_name(&c->frame, ms_frame_bytes_of(&c->frame, &name),
                    area->y1 + NAME_Y_PX + fmax(c->words_px - 20.0, 0.0));
}

static void put_axes(const struct curve *c)
{
    ms_text name = {.arena = c->frame.script->arena};
    ms_text_add(&name, "%s (%s)", c->curves->y_name, c->unit->name);
    put_x_axis(c);
    ms_frame_y_axis(&c->frame, &c->y, (double)c->unit->size,
                    ms_frame_bytes_of(&c->frame, &name));
}

/* ---- capacity ------------------------------------------------------------ */

/* How many points of all series lie in the box, or near it. */
static uint32_t points_in(const struct curve *c, const ms_box *box)
{
    uint32_t n = 0;
    for (uint32_t s = 0; s < c->curves->n; s++) {
        const ms_series *series = &c->curves->series[s];
        for (uint32_t i = 0; i < series->n; i++) {
            double x = ms_scale_px(&c->x, series->x[i]);
            double y = series->y[i] == MS_NO_LEVEL
                           ? -INFINITY
                           : ms_scale_px(&c->y, (double)series->y[i]);
            n += x > box->x0 - 40.0 && x < box->x1 + 40.0 &&
                 y > box->y0 - 40.0 && y < box->y1 + 40.0;
        }
    }
    return n;
}

/* On the line or under it, on the left or on the right: where the fewest points
 * are near. */
static ms_box room_of(const struct curve *c, double width, double y)
{
    const ms_box *area = &c->frame.area;
    ms_box best = {0};
    uint32_t least = UINT32_MAX;
    for (int i = 0; i < 4; i++) {
        double x0 = i % 2 == 0 ? area->x0 + 8.0 : area->x1 - 8.0 - width;
        double y0 = i / 2 == 0 ? y - 25.0 : y + 3.0;
        ms_box box = {x0, y0, x0 + width, y0 + 22.0};
        uint32_t n = points_in(c, &box);
        if (n < least && y0 > area->y0 - 30.0) {
            least = n;
            best = box;
        }
    }
    return best;
}

static void put_capacity(const struct curve *c)
{
    const ms_curves *curves = c->curves;
    const ms_box *area = &c->frame.area;
    ms_text text = {.arena = c->frame.script->arena};
    if (!c->shows_capacity)
        return;
    ms_frame_capacity(&text, curves->capacity_bytes, curves->usable_bytes);
    const char *words = ms_frame_bytes_of(&c->frame, &text);
    double width = ms_escape_width(words, MS_TEXT_PX, false) * MS_FRAME_SLACK;
    double y = ms_scale_px(&c->y, (double)curves->usable_bytes);
    ms_canvas_line(c->frame.script, &(ms_box){area->x0, y, area->x1, y}, 1.6,
                   MS_FRAME_RED, false);
    ms_box box = room_of(c, width, y);
    ms_frame_text(&c->frame, words, box.x0, (box.y0 + box.y1) / 2, MS_LEFT,
                  MS_FRAME_RED, width);
}

/* ---- names beside the plot ----------------------------------------------- */

/* Where a line ends: its last point. */
static double end_of(const struct curve *c, uint32_t s)
{
    const ms_series *series = &c->curves->series[s];
    for (uint32_t i = series->n; i-- > 0;)
        if (series->y[i] != MS_NO_LEVEL)
            return ms_scale_px(&c->y, (double)series->y[i]);
    return c->frame.area.y1;
}

/* By insertion: there are few. */
static void order_names(struct curve *c)
{
    for (uint32_t s = 0; s < c->curves->n; s++) {
        uint32_t at = s;
        c->name_y[s] = end_of(c, s);
        for (; at > 0 && c->name_y[c->order[at - 1]] > c->name_y[s]; at--)
            c->order[at] = c->order[at - 1];
        c->order[at] = s;
    }
}

/* Pushed down until they are apart, then up as far as they are too low. */
static void spread_names(struct curve *c)
{
    uint32_t n = c->curves->n;
    double low = c->frame.area.y1 - ROW_PX / 2;
    for (uint32_t i = 1; i < n; i++) {
        double least = c->name_y[c->order[i - 1]] + ROW_PX;
        c->name_y[c->order[i]] = fmax(c->name_y[c->order[i]], least);
    }
    for (uint32_t i = n; i-- > 0; low -= ROW_PX)
        c->name_y[c->order[i]] = fmin(c->name_y[c->order[i]], low);
}

static void put_side(struct curve *c)
{
    double x = c->frame.area.x1;
    if (!c->has_side)
        return;
    order_names(c);
    spread_names(c);
    for (uint32_t s = 0; s < c->curves->n; s++) {
        ms_marks_object(c->frame.script, s, x + 16.0, c->name_y[s], RADIUS_PX);
        ms_frame_text(&c->frame, c->curves->series[s].name, x + 30.0,
                      c->name_y[s], MS_LEFT, ms_marks_color(s),
                      MS_FRAME_RIGHT - x - 30.0);
    }
}

/* ---- data ---------------------------------------------------------------- */

static void block_name(char name[16], char kind, uint32_t s)
{
    const char letters[] = {kind, '_', (char)('a' + s), '\0'};
    strcpy(name, letters);
}

static void put_line(const struct curve *c, uint32_t s)
{
    const ms_series *series = &c->curves->series[s];
    char name[16];
    block_name(name, 'l', s);
    ms_text_add(c->frame.script, "$%s << EOD\n", name);
    for (uint32_t i = 0; i < series->n; i++)
        if (series->y[i] == MS_NO_LEVEL)
            ms_text_add(c->frame.script, "\n");
        else
            ms_frame_point(c->frame.script, ms_scale_px(&c->x, series->x[i]),
                           ms_scale_px(&c->y, (double)series->y[i]));
    ms_text_add(c->frame.script, "EOD\n");
}

/* The signs of a series that are filled, or those that are hollow. */
static bool put_signs(const struct curve *c, uint32_t s, bool filled)
{
    const ms_series *series = &c->curves->series[s];
    bool any = false;
    char name[16];
    double radius = c->n_xs > 40 ? RADIUS_PX / 2 : RADIUS_PX;
    block_name(name, filled ? 'f' : 'h', s);
    for (uint32_t i = 0; i < series->n; i++) {
        bool fits = series->fits == NULL || series->fits[i];
        if (series->y[i] == MS_NO_LEVEL || fits != filled)
            continue;
        if (!any)
            ms_text_add(c->frame.script, "$%s << EOD\n", name);
        any = true;
        ms_marks_write(c->frame.script, s, ms_scale_px(&c->x, series->x[i]),
                       ms_scale_px(&c->y, (double)series->y[i]), radius);
    }
    if (any)
        ms_text_add(c->frame.script, "EOD\n");
    return any;
}

static void put_data(struct curve *c)
{
    ms_text *script = c->frame.script;
    bool any[MS_CURVES_MOST][2];
    char name[16];
    for (uint32_t s = 0; s < c->curves->n; s++) {
        put_line(c, s);
        any[s][0] = put_signs(c, s, false);
        any[s][1] = put_signs(c, s, true);
    }
    ms_frame_open_plot(&c->frame);
    for (uint32_t s = 0; s < c->curves->n; s++) {
        block_name(name, 'l', s);
        ms_text_add(script,
                    ", \\\n  $%s using 1:2 with lines linewidth 1.8 "
                    "dashtype %s linecolor rgb '%s' notitle",
                    name, ms_marks_is_dashed(s) ? "2" : "1", ms_marks_color(s));
    }
    for (uint32_t s = 0; s < c->curves->n; s++)
        for (int filled = 0; filled < 2; filled++) {
            block_name(name, filled ? 'f' : 'h', s);
            if (any[s][filled])
                ms_marks_plot(script, name, s, filled == 1, false);
        }
    ms_text_add(script, "\n");
}

ms_err ms_figure_curve(const ms_curves *curves, const ms_drawing *drawing,
                       ms_fault *fault)
{
    ms_format format;
    ms_text script = {.arena = drawing->arena};
    struct curve c = {.curves = curves, .frame = ms_frame_of(drawing, &script)};
    MS_TRY(ms_gnuplot_format(drawing->path, &format, fault));
    if (curves->n > MS_CURVES_MOST)
        return ms_fail(fault, MS_EINPUT, NULL, NULL,
                       "%u lines are too many for one figure (at most %u)",
                       curves->n, MS_CURVES_MOST);
    MS_TRY(load(&c, fault));
    double height = ceil(place(&c));
    ms_frame_begin(&c.frame, format, height);
    put_axes(&c);
    put_capacity(&c);
    put_side(&c);
    put_data(&c);
    return ms_gnuplot_draw(&script, format, drawing->path, drawing->script_path,
                           fault);
}
