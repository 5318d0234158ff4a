/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Peak against what a step takes: its time, or throughput.  Thousands of
 * trades: signs become small, and of those that are beaten one per family is
 * drawn where several would cover each other. */

#include <math.h>
#include <string.h>

#include "plots/axes/frame.h"
#include "plots/axes/units.h"
#include "plots/figures/pareto.h"
#include "plots/gnuplot/canvas.h"
#include "plots/gnuplot/escape.h"
#include "plots/plots.h"

/* Below the plot stand ticks and, at NAME_Y_PX, the axis' name; above it, in
 * FLAG_PX, the capacity. */
#define AREA_PX 400.0
#define BOUNDED_PX 640.0 /* room for the names of all that is above a bound */
#define BELOW_PX 76.0
#define NAME_Y_PX 50.0
#define FLAG_PX 30.0
/* Of more than NAME_ALL trades only the optimal have names. */
#define NAME_ALL 15u
/* Signs in a cell cover each other. */
#define CELL_PX 4.0
/* How far off, in spans, the capacity is still shown. */
#define NEAR_PART 0.6
/* What the axes have, in spans, before and behind what is drawn. */
#define BEFORE 0.14
#define BEHIND 0.1
#define ZONE "#FBF0EF"
#define STAIRS "#8A8A8A"
#define STAR_PX 15.0 /* radius of what was chosen */

/* ---- what does not fit --------------------------------------------------- */

static bool is_limit(const ms_limit *a, const ms_limit *b)
{
    return a->capacity_bytes == b->capacity_bytes &&
           a->usable_bytes == b->usable_bytes;
}

/* The one that all have, or the first few that some have. */
static void find_limits(ms_pareto *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        const ms_limit *limit = &p->spots[i].trade->limit;
        uint32_t at = 0;
        while (at < p->n_limits && !is_limit(&p->limits[at], limit))
            at++;
        if (at == p->n_limits && at < MS_PARETO_LIMITS)
            p->limits[p->n_limits++] = *limit;
    }
    if (p->n_limits > 1)
        return;
    p->limit = p->limits[0];
    p->n_limits = 0;
}

/* Without a capacity the zone begins with the least peak that does not fit, if
 * all that fit are below it. */
static void find_zone(ms_pareto *p)
{
    uint64_t highest = 0, lowest = UINT64_MAX;
    for (uint32_t i = 0; i < p->n; i++) {
        const ms_trade *trade = p->spots[i].trade;
        if (trade->fits && trade->peak_bytes > highest)
            highest = trade->peak_bytes;
        if (!trade->fits && trade->peak_bytes < lowest)
            lowest = trade->peak_bytes;
    }
    p->zone_bytes = INFINITY;
    if (p->limit.usable_bytes > 0)
        p->zone_bytes = (double)p->limit.usable_bytes;
    else if (p->n_limits == 0 && lowest != UINT64_MAX && lowest > highest)
        p->zone_bytes = (double)lowest;
    for (uint32_t i = 0; i < p->n; i++) {
        ms_spot *spot = &p->spots[i];
        spot->is_pale = !spot->trade->fits &&
                        (double)spot->trade->peak_bytes < p->zone_bytes;
        p->has_pale |= spot->is_pale;
    }
}

/* ---- names --------------------------------------------------------------- */

static ms_callout callout_of(const ms_pareto *p, const ms_spot *spot)
{
    ms_arena *arena = p->frame.script->arena;
    const char *name = spot->trade->name;
    if (spot->equals == 1) /* the next one */
        name = ms_arena_format(arena, "%s = %s", name, spot[1].trade->name);
    else if (spot->equals > 1)
        name = ms_arena_format(arena, "%s = %u more", name, spot->equals);
    if (spot->trade->is_chosen && name != NULL)
        name = ms_arena_format(arena, "chosen: %s", name);
    p->frame.script->failed |= name == NULL;
    return (ms_callout){.name = name != NULL ? name : "",
                        .x = spot->x,
                        .y = spot->y,
                        .radius = spot->trade->is_chosen ? STAR_PX : p->radius};
}

static bool comes_first(const ms_spot *spot)
{
    return !spot->is_hidden && !spot->trade->is_bound &&
           (spot->is_optimal || spot->trade->is_chosen);
}

static bool comes_then(const ms_pareto *p, const ms_spot *spot)
{
    return (p->n <= NAME_ALL || p->bounded) && !spot->is_hidden &&
           !spot->trade->is_bound && !comes_first(spot);
}

/* What is to have a name, the optimal first, and of those *n_best. */
static ms_err list_names(ms_pareto *p, ms_callout **list, uint32_t *n_best,
                         uint32_t *n, ms_fault *fault)
{
    *n = 0;
    *list = ms_arena_take_raw(p->frame.script->arena, p->n, sizeof **list);
    if (*list == NULL)
        return ms_fail_nomem(fault);
    for (int chosen = 1; chosen >= 0; chosen--)
        for (uint32_t i = 0; i < p->n; i++)
            if (comes_first(&p->spots[i]) &&
                p->spots[i].trade->is_chosen == (chosen == 1))
                (*list)[(*n)++] = callout_of(p, &p->spots[i]);
    *n_best = *n;
    for (uint32_t i = 0; i < p->n; i++)
        if (comes_then(p, &p->spots[i]))
            (*list)[(*n)++] = callout_of(p, &p->spots[i]);
    return MS_OK;
}

static ms_err put_names(ms_pareto *p, ms_fault *fault)
{
    ms_callout *list;
    uint32_t n = 0, n_best = 0;
    MS_TRY(list_names(p, &list, &n_best, &n, fault));
    for (uint32_t i = 0; i < p->n; i++) {
        const ms_spot *spot = &p->spots[i];
        double r = spot->trade->is_chosen ? STAR_PX : p->radius * 1.1;
        if (!spot->is_hidden && !spot->trade->is_bound)
            ms_labelplaces_take(
                &p->places,
                &(ms_box){spot->x - r, spot->y - r, spot->x + r, spot->y + r});
    }
    p->n_unnamed = n - ms_callouts_find(&p->places, list, n_best, n);
    for (uint32_t i = 0; i < n; i++)
        ms_callouts_put(&p->frame, &list[i], i < n_best ? "#000000" : MS_GREY);
    return p->places.failed ? ms_fail_nomem(fault) : MS_OK;
}

/* ---- scales -------------------------------------------------------------- */

/* The part of the span before the first trade that gives the name of the first
 * optimal one room on its left. */
static double room_before(ms_pareto *p)
{
    double all = p->frame.area.x1 - p->frame.area.x0;
    uint32_t first = 0;
    while (first + 1 < p->n && !p->spots[first].is_optimal)
        first++;
    ms_callout callout = callout_of(p, &p->spots[first]);
    double need = ms_callouts_width(&callout, &p->places) + p->radius + 10.0;
    double part = need * (1.0 + BEHIND) / (all - need);
    return need < all * 0.45 && part > BEFORE ? part : BEFORE;
}

/* ns, or tokens or samples a second. */
static double value_of(const ms_pareto *p, const ms_spot *spot)
{
    return p->by_rate ? 1e9 / spot->cost : spot->cost;
}

static const ms_unit *rate_unit(double highest)
{
    static const ms_unit units[] = {{"", 1, 0},
                                    {"thousand ", 1000, 10000},
                                    {"million ", 1000000, 10000000}};
    size_t i = sizeof units / sizeof *units - 1;
    while (i > 0 && highest < (double)units[i].from)
        i--;
    return &units[i];
}

/* A capacity that is far from all trades would press them together: then it is
 * only named. */
static void set_scales(ms_pareto *p)
{
    const ms_box *area = &p->frame.area;
    double low_x = INFINITY, high_x = 0.0, low_y = INFINITY, high_y = 0.0;
    for (uint32_t i = 0; i < p->n; i++) {
        const ms_trade *trade = p->spots[i].trade;
        low_x = fmin(low_x, (double)trade->peak_bytes);
        high_x = fmax(high_x, (double)trade->peak_bytes);
        low_y = fmin(low_y, value_of(p, &p->spots[i]));
        high_y = fmax(high_y, value_of(p, &p->spots[i]));
    }
    double reach = fmax(high_x - low_x, high_x * 0.1) * NEAR_PART;
    double from = low_x - reach, to = high_x + reach;
    for (uint32_t i = 0; i <= p->n_limits; i++) {
        const ms_limit *limit = i < p->n_limits ? &p->limits[i] : &p->limit;
        double usable = (double)limit->usable_bytes;
        if (limit->usable_bytes == 0 || usable < from || usable > to)
            continue;
        low_x = fmin(low_x, usable);
        high_x = fmax(high_x, usable);
    }
    p->x = ms_scale_around(low_x, high_x, area->x0, area->x1, room_before(p),
                           BEHIND);
    p->y = ms_scale_around(low_y, high_y, area->y1, area->y0, BEFORE, BEHIND);
    p->x_unit = ms_units_bytes((uint64_t)p->x.to);
    p->y_unit =
        p->by_rate ? rate_unit(p->y.to) : ms_units_time((uint64_t)p->y.to);
    for (uint32_t i = 0; i < p->n; i++) {
        ms_spot *spot = &p->spots[i];
        spot->x = ms_scale_px(&p->x, (double)spot->trade->peak_bytes);
        spot->y = ms_scale_px(&p->y, value_of(p, spot));
    }
}

/* Hides what is beaten and would be drawn over: the first of a cell stays, of
 * few trades the first of each family. */
static ms_err thin(ms_pareto *p, ms_fault *fault)
{
    const ms_box *area = &p->frame.area;
    bool is_crowd = p->n > MS_PARETO_CROWD;
    double pitch = is_crowd ? p->radius * 2.0 : CELL_PX;
    size_t columns = (size_t)((area->x1 - area->x0) / pitch) + 1;
    size_t rows = (size_t)((area->y1 - area->y0) / pitch) + 1;
    uint8_t *seen = ms_arena_take(p->frame.script->arena,
                                  columns * rows * MS_PARETO_FAMILIES * 2, 1);
    if (seen == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < p->n; i++) {
        ms_spot *spot = &p->spots[i];
        size_t column = (size_t)((spot->x - area->x0) / pitch);
        size_t row = (size_t)((spot->y - area->y0) / pitch);
        size_t cell = (row * columns + column) * MS_PARETO_FAMILIES;
        cell = (cell + (is_crowd ? 0 : spot->sign)) * 2 + spot->is_pale;
        if (p->n <= NAME_ALL || p->bounded || spot->is_optimal ||
            spot->is_hidden)
            continue;
        spot->is_hidden = seen[cell] != 0;
        p->n_hidden += spot->is_hidden;
        seen[cell] = 1;
    }
    return MS_OK;
}

/* ---- data ---------------------------------------------------------------- */

/* From the worst over each optimal trade to the right border. */
static double worst_y(const ms_pareto *p)
{
    return p->by_rate ? p->frame.area.y1 : p->frame.area.y0;
}

static void put_stairs(ms_pareto *p)
{
    const ms_box *area = &p->frame.area;
    double y = worst_y(p);
    ms_text_add(p->frame.script, "$stairs << EOD\n");
    for (uint32_t i = 0; i < p->n; i++) {
        const ms_spot *spot = &p->spots[i];
        if (!spot->is_optimal || spot->is_hidden)
            continue;
        ms_canvas_point(p->frame.script, spot->x, y);
        ms_canvas_point(p->frame.script, spot->x, spot->y);
        y = spot->y;
    }
    ms_canvas_point(p->frame.script, area->x1, y);
    ms_text_add(p->frame.script, "EOD\n");
}

static void add_stairs(ms_pareto *p)
{
    const ms_box *area = &p->frame.area;
    double x = area->x0, y = worst_y(p);
    bool first = true;
    for (uint32_t i = 0; i < p->n; i++) {
        const ms_spot *spot = &p->spots[i];
        if (!spot->is_optimal || spot->is_hidden)
            continue;
        if (!first)
            ms_labelplaces_add_line(&p->places, x, y, spot->x, y);
        first = false;
        ms_labelplaces_add_line(&p->places, spot->x, y, spot->x, spot->y);
        x = spot->x;
        y = spot->y;
    }
    ms_labelplaces_add_line(&p->places, x, y, area->x1, y);
}

/* A block for each look: sign, filled, pale.  A bound is a line alone. */
static bool put_block(ms_pareto *p, uint32_t look, const char *name)
{
    bool any = false;
    for (uint32_t i = 0; i < p->n; i++) {
        const ms_spot *spot = &p->spots[i];
        uint32_t own = spot->sign * 4 + spot->is_optimal * 2u + !spot->is_pale;
        if (own != look || spot->is_hidden || spot->trade->is_bound)
            continue;
        if (!any)
            ms_text_add(p->frame.script, "$%s << EOD\n", name);
        any = true;
        ms_marks_write(
            p->frame.script, &p->families[spot->sign].mark, spot->x, spot->y,
            spot->is_optimal && p->n > MS_PARETO_CROWD ? p->radius * 1.4
                                                       : p->radius);
    }
    if (any)
        ms_text_add(p->frame.script, "EOD\n");
    return any;
}

static const ms_sign star = {0, 0, MS_MARKS_STAR, 0};

static bool put_star(ms_pareto *p)
{
    bool any = false;
    for (uint32_t i = 0; i < p->n; i++) {
        if (!p->spots[i].trade->is_chosen || p->spots[i].is_hidden)
            continue;
        ms_text_add(p->frame.script, "%s", any ? "" : "$chosen << EOD\n");
        ms_marks_write(p->frame.script, &star, p->spots[i].x, p->spots[i].y,
                       STAR_PX);
        any = true;
    }
    ms_text_add(p->frame.script, "%s", any ? "EOD\n" : "");
    return any;
}

/* What stands back is drawn first. */
static void put_data(ms_pareto *p)
{
    static const char *const names[] = {"pale_beaten", "beaten", "pale_best",
                                        "best"};
    bool any[MS_PARETO_FAMILIES * 4];
    char block[32];
    bool has_star = put_star(p);
    put_stairs(p);
    for (uint32_t look = 0; look < MS_PARETO_FAMILIES * 4; look++) {
        strcpy(block, names[look % 4]);
        strcat(block, (char[]){'_', (char)('a' + look / 4), '\0'});
        any[look] = put_block(p, look, block);
    }
    ms_frame_open_plot(&p->frame);
    ms_text_add(p->frame.script,
                ", \\\n  $stairs using 1:2 with lines "
                "linewidth 1.6 linecolor rgb '" STAIRS "' notitle");
    for (uint32_t kind = 0; kind < 4; kind++)
        for (uint32_t sign = 0; sign < MS_PARETO_FAMILIES; sign++) {
            if (!any[sign * 4 + kind])
                continue;
            strcpy(block, names[kind]);
            strcat(block, (char[]){'_', (char)('a' + sign), '\0'});
            ms_marks_plot(p->frame.script, block, &p->families[sign].mark,
                          kind >= 2, kind % 2 == 0);
        }
    if (has_star)
        ms_marks_plot(p->frame.script, "chosen", &star, true, false);
    ms_text_add(p->frame.script, "\n");
}

/* ---- capacity ------------------------------------------------------------ */

/* Words in red in a row above the area, around x. */
static void put_flag(const ms_pareto *p, const ms_text *words, double x,
                     uint32_t row)
{
    const ms_box *area = &p->frame.area;
    const char *bytes = ms_frame_bytes_of(&p->frame, words);
    double half =
        ms_escape_width(bytes, MS_TEXT_PX, false) * MS_FRAME_SLACK / 2;
    double middle = fmax(fmin(x, MS_FRAME_RIGHT - half), MS_FRAME_LEFT + half);
    ms_frame_text(&p->frame, bytes, middle, area->y0 - FLAG_PX * (row + 0.5),
                  MS_CENTER, MS_FRAME_RED, MS_FRAME_RIGHT - MS_FRAME_LEFT);
}

/* Within the axis, or at its nearer end. */
static double limit_x(const ms_pareto *p, double bytes)
{
    const ms_box *area = &p->frame.area;
    if (bytes <= p->x.from)
        return area->x0;
    return bytes < p->x.to ? ms_scale_px(&p->x, bytes) : area->x1;
}

static void put_wall(ms_pareto *p, double x, double up)
{
    const ms_box *area = &p->frame.area;
    if (x <= area->x0 || x >= area->x1)
        return;
    ms_canvas_line(p->frame.script, &(ms_box){x, area->y0 - up, x, area->y1},
                   1.6, MS_FRAME_RED, false);
    ms_labelplaces_add_line(&p->places, x, area->y0, x, area->y1);
}

static void put_zone(ms_pareto *p)
{
    const ms_box *area = &p->frame.area;
    double zone = p->zone_bytes, x = limit_x(p, zone);
    bool has_limit = p->limit.usable_bytes > 0;
    ms_box box = {x, area->y0, area->x1, area->y1};
    if (x < area->x1)
        ms_canvas_box(p->frame.script, &box, ZONE, false);
    put_wall(p, x, 0.0);
    ms_text words = {.arena = p->frame.script->arena};
    if (!has_limit && isfinite(zone))
        ms_text_add(&words, "from here on nothing fits");
    else if (!has_limit)
        return;
    else if (zone >= p->x.to)
        ms_text_add(&words, "all below ");
    else
        ms_text_add(&words, zone <= p->x.from ? "all above " : "");
    if (has_limit)
        ms_frame_capacity(&words, p->limit.capacity_bytes,
                          p->limit.usable_bytes);
    if (x > area->x0 && x < area->x1 && has_limit)
        ms_text_add(&words, ": right of it nothing fits");
    put_flag(p, &words, x, 0);
}

/* Of devices that differ: a line and a row of words each. */
static void put_limits(ms_pareto *p)
{
    const ms_box *area = &p->frame.area;
    for (uint32_t i = 0; i < p->n_limits; i++) {
        const ms_limit *limit = &p->limits[i];
        ms_text words = {.arena = p->frame.script->arena};
        double x = limit_x(p, (double)limit->usable_bytes);
        if (limit->usable_bytes == 0)
            continue;
        ms_text_put(&words, limit->device, strlen(limit->device));
        ms_text_add(&words, ": ");
        ms_frame_capacity(&words, limit->capacity_bytes, limit->usable_bytes);
        ms_text_add(&words, "%s",
                    x <= area->x0   ? " (lower)"
                    : x >= area->x1 ? " \u2192"
                                    : "");
        put_wall(p, x, FLAG_PX * i + 3.0);
        put_flag(p, &words, x, i);
    }
}

/* ---- the figure ---------------------------------------------------------- */

/* The note is written once it is known what has a name: above the plot, where
 * one line is kept for it. */
static const char *note_of(const ms_pareto *p)
{
    ms_text note = {.arena = p->frame.script->arena};
    if (p->bounded) {
        ms_text_add(&note,
                    "line: the best plans of the solver\u2019s model, as the "
                    "final program runs them; %s left is better",
                    p->by_rate ? "upper" : "lower");
        return ms_frame_bytes_of(&p->frame, &note);
    }
    ms_text_add(&note,
                "filled: nothing is as good in both and better in one; "
                "hollow: beaten; %s left is better",
                p->by_rate ? "upper" : "lower");
    for (uint32_t i = 0; i < p->n; i++)
        if (p->spots[i].trade->is_chosen)
            ms_text_add(&note, "; star: chosen");
    if (p->has_pale)
        ms_text_add(&note, "; pale: does not fit");
    if (p->n > MS_PARETO_CROWD)
        ms_text_add(&note, "; %u points", p->n);
    if (p->n > NAME_ALL)
        ms_text_add(&note, "; names of filled ones only");
    if (p->n_hidden > 0)
        ms_text_add(&note, "; hollow ones that others cover are left out");
    return ms_frame_bytes_of(&p->frame, &note);
}

static void put_unnamed(const ms_pareto *p)
{
    ms_text words = {.arena = p->frame.script->arena};
    if (p->n_unnamed == 0)
        return;
    ms_text_add(&words, "no room for %u name%s", p->n_unnamed,
                p->n_unnamed == 1 ? "" : "s");
    ms_frame_text(&p->frame, ms_frame_bytes_of(&p->frame, &words),
                  MS_FRAME_LEFT, p->frame.area.y1 + NAME_Y_PX, MS_LEFT, MS_GREY,
                  270.0);
}

static ms_err place(ms_pareto *p, ms_fault *fault)
{
    double height = p->bounded ? BOUNDED_PX : AREA_PX;
    find_limits(p);
    find_zone(p);
    p->places.arena = p->frame.script->arena;
    p->frame.area = p->places.area =
        (ms_box){96.0, 0.0, MS_FRAME_RIGHT - 14.0, height};
    set_scales(p);
    MS_TRY(thin(p, fault));
    ms_frame_heading(&p->frame, note_of(p));
    ms_frame_legend(&p->frame, p->families,
                    p->n_families > 1 ? p->n_families : 0);
    double top = p->frame.y + 14.0;
    if (p->n_limits > 0)
        top = p->frame.y + FLAG_PX * p->n_limits;
    else if (p->limit.usable_bytes > 0 || isfinite(p->zone_bytes))
        top = p->frame.y + FLAG_PX;
    p->frame.area.y0 = ceil(top);
    p->frame.area.y1 = p->frame.area.y0 + height;
    set_scales(p);
    p->places.area = p->frame.area;
    return MS_OK;
}

static void put_axes(ms_pareto *p)
{
    ms_text x = {.arena = p->frame.script->arena}, y = x;
    ms_text_add(&x, "peak device memory%s (%s%s)",
                p->frame.drawing->per_gpu ? " per GPU" : "", p->x_unit->name,
                p->x.is_log ? ", log scale" : "");
    if (p->by_rate)
        ms_text_add(&y, "throughput (%s%s/s%s)", p->y_unit->name,
                    p->spots[0].trade->has_tokens ? "tokens" : "samples",
                    p->y.is_log ? ", log scale" : "");
    else
        ms_text_add(&y, "step time (%s%s)", p->y_unit->name,
                    p->y.is_log ? ", log scale" : "");
    ms_frame_x_axis(&p->frame, &p->x, (double)p->x_unit->size,
                    ms_frame_bytes_of(&p->frame, &x));
    ms_frame_y_axis(&p->frame, &p->y, (double)p->y_unit->size,
                    ms_frame_bytes_of(&p->frame, &y));
}

ms_err ms_figure_pareto(const ms_trade *trades, uint32_t n,
                        const ms_drawing *drawing, ms_fault *fault)
{
    ms_format format;
    ms_text script = {.arena = drawing->arena};
    ms_pareto p = {.frame = ms_frame_of(drawing, &script)};
    MS_TRY(ms_gnuplot_format(drawing->path, &format, fault));
    if (n == 0)
        return ms_fail(fault, MS_EINPUT, NULL,
                       "a refused point says why in its \"message\"",
                       "no point has numbers: there is nothing to draw");
    MS_TRY(ms_trades_load(&p, trades, n, fault));
    MS_TRY(place(&p, fault));
    double height = p.frame.area.y1 + BELOW_PX;
    ms_frame_begin(&p.frame, format, height);
    put_zone(&p);
    put_limits(&p);
    put_axes(&p);
    add_stairs(&p);
    MS_TRY(put_names(&p, fault));
    put_unnamed(&p);
    put_data(&p);
    return ms_gnuplot_draw(&script, format, drawing->path, drawing->script_path,
                           fault);
}
