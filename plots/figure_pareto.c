/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Peak against step time.  A trade is optimal when no other has a peak and a
 * step time that are both as low and one of them lower; equal ones are so
 * together.  Thousands of trades: signs become small, and of those that are
 * beaten one per family is drawn where several would cover each other. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plots/frame.h"

/* Below the plot stand ticks and, at NAME_Y_PX, the axis' name; above it, in
 * FLAG_PX, the capacity. */
#define AREA_PX 400.0
#define BELOW_PX 76.0
#define NAME_Y_PX 50.0
#define FLAG_PX 30.0
/* Of more than NAME_ALL trades only the optimal have names; of more than CROWD
 * the signs are small. */
#define NAME_ALL 15u
#define CROWD 300u
/* Signs in a cell cover each other. */
#define CELL_PX 4.0
/* How far off, in spans, the capacity is still shown. */
#define NEAR_PART 0.6
/* What the axes have, in spans, before and behind what is drawn. */
#define BEFORE 0.14
#define BEHIND 0.1
#define ZONE "#FBF0EF"
#define STAIRS "#8A8A8A"

struct spot {
    const ms_trade *trade;
    double x, y;
    uint32_t sign;
    uint32_t equals; /* trades with the same numbers, which are not drawn */
    bool is_optimal, is_hidden;
    bool is_pale; /* does not fit, and lies in no zone that says so */
};

struct pareto {
    ms_frame frame;
    struct spot *spots; /* by peak, then by step */
    uint32_t n, n_optimal, n_hidden, n_unnamed;
    uint64_t capacity_bytes, usable_bytes;
    double zone_bytes; /* nothing from here on fits; infinite: no zone */
    bool has_pale, shows_capacity;
    ms_scale x, y;
    const ms_unit *x_unit, *y_unit;
    double radius;
    ms_frame_entry families[MS_MARKS];
    uint32_t n_families;
    ms_places places;
};

/* ---- what is optimal ----------------------------------------------------- */

/* Equal ones stay in the order given. */
static int by_peak(const void *a, const void *b)
{
    const ms_trade *p = ((const struct spot *)a)->trade,
                   *q = ((const struct spot *)b)->trade;
    if (p->peak_bytes != q->peak_bytes)
        return p->peak_bytes < q->peak_bytes ? -1 : 1;
    if (p->step_ns != q->step_ns)
        return p->step_ns < q->step_ns ? -1 : 1;
    return p < q ? -1 : p > q;
}

static bool are_equal(const ms_trade *a, const ms_trade *b)
{
    return a->peak_bytes == b->peak_bytes && a->step_ns == b->step_ns;
}

static void judge(struct pareto *p)
{
    uint64_t best_ns = UINT64_MAX;
    qsort(p->spots, p->n, sizeof *p->spots, by_peak);
    for (uint32_t i = 0, first = 0; i < p->n; i++) {
        struct spot *spot = &p->spots[i];
        if (i > 0 && are_equal(spot->trade, p->spots[first].trade)) {
            spot->is_optimal = p->spots[first].is_optimal;
            spot->is_hidden = spot->trade->fits == p->spots[first].trade->fits;
            p->spots[first].equals += spot->is_hidden;
            p->n_optimal += spot->is_optimal;
            continue;
        }
        first = i;
        spot->is_optimal = spot->trade->step_ns < best_ns;
        if (spot->is_optimal)
            best_ns = spot->trade->step_ns;
        p->n_optimal += spot->is_optimal;
    }
}

/* In the order in which they first appear, so that the first is the first;
 * what has no sign left is "other". */
static uint32_t sign_of(struct pareto *p, const char *family)
{
    for (uint32_t i = 0; i < p->n_families; i++)
        if (strcmp(p->families[i].name, family) == 0)
            return i;
    if (p->n_families == MS_MARKS) {
        p->families[MS_MARKS - 1].name = "other";
        return MS_MARKS - 1;
    }
    p->families[p->n_families] = (ms_frame_entry){family, p->n_families};
    return p->n_families++;
}

static ms_err load(struct pareto *p, const ms_trade *trades, uint32_t n,
                   ms_fault *fault)
{
    p->n = n;
    p->spots = ms_arena_take(p->frame.script->arena, n, sizeof *p->spots);
    if (p->spots == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < n; i++)
        p->spots[i] = (struct spot){.trade = &trades[i],
                                    .sign = sign_of(p, trades[i].family)};
    judge(p);
    p->radius = n > CROWD ? 4.0 : n > 60 ? 5.5 : 8.0;
    return MS_OK;
}

/* ---- what does not fit --------------------------------------------------- */

/* Without a capacity the zone begins with the least peak that does not fit, if
 * all that fit are below it. */
static void find_zone(struct pareto *p)
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
    if (p->usable_bytes > 0)
        p->zone_bytes = (double)p->usable_bytes;
    else if (lowest != UINT64_MAX && lowest > highest)
        p->zone_bytes = (double)lowest;
    for (uint32_t i = 0; i < p->n; i++) {
        struct spot *spot = &p->spots[i];
        spot->is_pale = !spot->trade->fits &&
                        (double)spot->trade->peak_bytes < p->zone_bytes;
        p->has_pale |= spot->is_pale;
    }
}

/* ---- names --------------------------------------------------------------- */

static ms_callout callout_of(const struct pareto *p, const struct spot *spot)
{
    ms_arena *arena = p->frame.script->arena;
    const char *name = spot->trade->name;
    if (spot->equals == 1) /* the next one */
        name = ms_arena_format(arena, "%s = %s", name, spot[1].trade->name);
    else if (spot->equals > 1)
        name = ms_arena_format(arena, "%s = %u more", name, spot->equals);
    p->frame.script->failed |= name == NULL;
    return (ms_callout){.name = name != NULL ? name : "",
                        .x = spot->x,
                        .y = spot->y,
                        .radius = p->radius};
}

/* What is to have a name, the optimal first, and of those *n_best. */
static ms_err list_names(struct pareto *p, ms_callout **list, uint32_t *n_best,
                         uint32_t *n, ms_fault *fault)
{
    *n = 0;
    *list = ms_arena_take_raw(p->frame.script->arena, p->n, sizeof **list);
    if (*list == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < p->n; i++)
        if (p->spots[i].is_optimal && !p->spots[i].is_hidden)
            (*list)[(*n)++] = callout_of(p, &p->spots[i]);
    *n_best = *n;
    for (uint32_t i = 0; i < p->n && p->n <= NAME_ALL; i++)
        if (!p->spots[i].is_optimal && !p->spots[i].is_hidden)
            (*list)[(*n)++] = callout_of(p, &p->spots[i]);
    return MS_OK;
}

static ms_err put_names(struct pareto *p, ms_fault *fault)
{
    ms_callout *list;
    uint32_t n = 0, n_best = 0;
    MS_TRY(list_names(p, &list, &n_best, &n, fault));
    for (uint32_t i = 0; i < p->n; i++) {
        const struct spot *spot = &p->spots[i];
        double r = p->radius * 1.1;
        if (!spot->is_hidden)
            ms_places_take(&p->places, &(ms_box){spot->x - r, spot->y - r,
                                                 spot->x + r, spot->y + r});
    }
    p->n_unnamed = n - ms_callouts_find(&p->places, list, n_best, n);
    for (uint32_t i = 0; i < n; i++)
        ms_callouts_put(&p->frame, &list[i], i < n_best ? "#000000" : MS_GREY);
    return p->places.failed ? ms_fail_nomem(fault) : MS_OK;
}

/* ---- scales -------------------------------------------------------------- */

/* The part of the span before the first trade that gives the name of the first
 * optimal one room on its left. */
static double room_before(struct pareto *p)
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

/* A capacity that is far from all trades would press them together: then it is
 * only named. */
static void set_scales(struct pareto *p)
{
    const ms_box *area = &p->frame.area;
    double low_x = INFINITY, high_x = 0.0, low_y = INFINITY, high_y = 0.0;
    for (uint32_t i = 0; i < p->n; i++) {
        const ms_trade *trade = p->spots[i].trade;
        low_x = fmin(low_x, (double)trade->peak_bytes);
        high_x = fmax(high_x, (double)trade->peak_bytes);
        low_y = fmin(low_y, (double)trade->step_ns);
        high_y = fmax(high_y, (double)trade->step_ns);
    }
    double usable = (double)p->usable_bytes;
    double reach = fmax(high_x - low_x, high_x * 0.1) * NEAR_PART;
    p->shows_capacity = p->usable_bytes > 0 && usable >= low_x - reach &&
                        usable <= high_x + reach;
    if (p->shows_capacity) {
        low_x = fmin(low_x, usable);
        high_x = fmax(high_x, usable);
    }
    p->x = ms_scale_around(low_x, high_x, area->x0, area->x1, room_before(p),
                           BEHIND);
    p->y = ms_scale_around(low_y, high_y, area->y1, area->y0, BEFORE, BEHIND);
    p->x_unit = ms_units_bytes((uint64_t)p->x.to);
    p->y_unit = ms_units_time((uint64_t)p->y.to);
    for (uint32_t i = 0; i < p->n; i++) {
        struct spot *spot = &p->spots[i];
        spot->x = ms_scale_px(&p->x, (double)spot->trade->peak_bytes);
        spot->y = ms_scale_px(&p->y, (double)spot->trade->step_ns);
    }
}

/* Hides what is beaten and would be drawn over: the first of a cell stays, of
 * few trades the first of each family. */
static ms_err thin(struct pareto *p, ms_fault *fault)
{
    const ms_box *area = &p->frame.area;
    bool is_crowd = p->n > CROWD;
    double pitch = is_crowd ? p->radius * 2.0 : CELL_PX;
    size_t columns = (size_t)((area->x1 - area->x0) / pitch) + 1;
    size_t rows = (size_t)((area->y1 - area->y0) / pitch) + 1;
    uint8_t *seen =
        ms_arena_take(p->frame.script->arena, columns * rows * MS_MARKS * 2, 1);
    if (seen == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < p->n; i++) {
        struct spot *spot = &p->spots[i];
        size_t column = (size_t)((spot->x - area->x0) / pitch);
        size_t row = (size_t)((spot->y - area->y0) / pitch);
        size_t cell = (row * columns + column) * MS_MARKS;
        cell = (cell + (is_crowd ? 0 : spot->sign)) * 2 + spot->is_pale;
        if (p->n <= NAME_ALL || spot->is_optimal || spot->is_hidden)
            continue;
        spot->is_hidden = seen[cell] != 0;
        p->n_hidden += spot->is_hidden;
        seen[cell] = 1;
    }
    return MS_OK;
}

/* ---- data ---------------------------------------------------------------- */

/* From the top over each optimal trade to the right border. */
static void put_stairs(struct pareto *p)
{
    const ms_box *area = &p->frame.area;
    double y = area->y0;
    ms_text_add(p->frame.script, "$stairs << EOD\n");
    for (uint32_t i = 0; i < p->n; i++) {
        const struct spot *spot = &p->spots[i];
        if (!spot->is_optimal || spot->is_hidden)
            continue;
        ms_frame_point(p->frame.script, spot->x, y);
        ms_frame_point(p->frame.script, spot->x, spot->y);
        y = spot->y;
    }
    ms_frame_point(p->frame.script, area->x1, y);
    ms_text_add(p->frame.script, "EOD\n");
}

static void add_stairs(struct pareto *p)
{
    const ms_box *area = &p->frame.area;
    double x = area->x0, y = area->y0;
    for (uint32_t i = 0; i < p->n; i++) {
        const struct spot *spot = &p->spots[i];
        if (!spot->is_optimal || spot->is_hidden)
            continue;
        if (y > area->y0)
            ms_places_add_line(&p->places, x, y, spot->x, y);
        ms_places_add_line(&p->places, spot->x, y, spot->x, spot->y);
        x = spot->x;
        y = spot->y;
    }
    ms_places_add_line(&p->places, x, y, area->x1, y);
}

/* A block for each look: sign, filled, pale. */
static bool put_block(struct pareto *p, uint32_t look, const char *name)
{
    bool any = false;
    for (uint32_t i = 0; i < p->n; i++) {
        const struct spot *spot = &p->spots[i];
        uint32_t own = spot->sign * 4 + spot->is_optimal * 2u + !spot->is_pale;
        if (own != look || spot->is_hidden)
            continue;
        if (!any)
            ms_text_add(p->frame.script, "$%s << EOD\n", name);
        any = true;
        ms_marks_write(p->frame.script, spot->sign, spot->x, spot->y,
                       spot->is_optimal && p->n > CROWD ? p->radius * 1.4
                                                        : p->radius);
    }
    if (any)
        ms_text_add(p->frame.script, "EOD\n");
    return any;
}

/* What stands back is drawn first. */
static void put_data(struct pareto *p)
{
    static const char *const names[] = {"pale_beaten", "beaten", "pale_best",
                                        "best"};
    bool any[MS_MARKS * 4];
    char block[32];
    put_stairs(p);
    for (uint32_t look = 0; look < MS_MARKS * 4; look++) {
        strcpy(block, names[look % 4]);
        strcat(block, (char[]){'_', (char)('a' + look / 4), '\0'});
        any[look] = put_block(p, look, block);
    }
    ms_frame_open_plot(&p->frame);
    ms_text_add(p->frame.script,
                ", \\\n  $stairs using 1:2 with lines "
                "linewidth 1.6 linecolor rgb '" STAIRS "' notitle");
    for (uint32_t kind = 0; kind < 4; kind++)
        for (uint32_t sign = 0; sign < MS_MARKS; sign++) {
            if (!any[sign * 4 + kind])
                continue;
            strcpy(block, names[kind]);
            strcat(block, (char[]){'_', (char)('a' + sign), '\0'});
            ms_marks_plot(p->frame.script, block, sign, kind >= 2,
                          kind % 2 == 0);
        }
    ms_text_add(p->frame.script, "\n");
}

/* ---- capacity ------------------------------------------------------------ */

static void put_flag(const struct pareto *p, const ms_text *words, double x)
{
    const ms_box *area = &p->frame.area;
    const char *bytes = ms_frame_bytes_of(&p->frame, words);
    double half =
        ms_escape_width(bytes, MS_TEXT_PX, false) * MS_FRAME_SLACK / 2;
    double middle = fmax(fmin(x, MS_FRAME_RIGHT - half), MS_FRAME_LEFT + half);
    ms_frame_text(&p->frame, bytes, middle, area->y0 - FLAG_PX / 2, MS_CENTER,
                  MS_FRAME_RED, MS_FRAME_RIGHT - MS_FRAME_LEFT);
}

static void put_zone(struct pareto *p)
{
    const ms_box *area = &p->frame.area;
    double zone = p->zone_bytes, x = area->x1;
    if (zone <= p->x.from)
        x = area->x0;
    else if (zone < p->x.to)
        x = ms_scale_px(&p->x, zone);
    ms_box box = {x, area->y0, area->x1, area->y1};
    if (x < area->x1)
        ms_canvas_box(p->frame.script, &box, ZONE, false);
    if (x > area->x0 && x < area->x1) {
        ms_canvas_line(p->frame.script, &(ms_box){x, area->y0, x, area->y1},
                       1.6, MS_FRAME_RED, false);
        ms_places_add_line(&p->places, x, area->y0, x, area->y1);
    }
    ms_text words = {.arena = p->frame.script->arena};
    if (p->usable_bytes == 0 && isfinite(zone))
        ms_text_add(&words, "from here on nothing fits");
    else if (p->usable_bytes == 0)
        return;
    else if (zone >= p->x.to)
        ms_text_add(&words, "all below ");
    else
        ms_text_add(&words, zone <= p->x.from ? "all above " : "");
    if (p->usable_bytes > 0)
        ms_frame_capacity(&words, p->capacity_bytes, p->usable_bytes);
    if (x > area->x0 && x < area->x1 && p->usable_bytes > 0)
        ms_text_add(&words, ": right of it nothing fits");
    put_flag(p, &words, x);
}

/* ---- the figure ---------------------------------------------------------- */

/* The note is written once it is known what has a name: above the plot, where
 * one line is kept for it. */
static const char *note_of(const struct pareto *p)
{
    ms_text note = {.arena = p->frame.script->arena};
    ms_text_add(&note, "filled: nothing is as good in both and better in one; "
                       "hollow: beaten; lower left is better");
    if (p->has_pale)
        ms_text_add(&note, "; pale: does not fit");
    if (p->n > CROWD)
        ms_text_add(&note, "; %u points", p->n);
    if (p->n > NAME_ALL)
        ms_text_add(&note, "; names of filled ones only");
    if (p->n_hidden > 0)
        ms_text_add(&note, "; hollow ones that others cover are left out");
    return ms_frame_bytes_of(&p->frame, &note);
}

static void put_unnamed(const struct pareto *p)
{
    ms_text words = {.arena = p->frame.script->arena};
    if (p->n_unnamed == 0)
        return;
    ms_text_add(&words, "no room for %u name%s", p->n_unnamed,
                p->n_unnamed == 1 ? "" : "s");
    ms_frame_text(&p->frame, ms_frame_bytes_of(&p->frame, &words),
                  p->frame.area.x1, p->frame.area.y1 + NAME_Y_PX, MS_RIGHT,
                  MS_GREY, 270.0);
}

static ms_err place(struct pareto *p, ms_fault *fault)
{
    find_zone(p);
    p->places.arena = p->frame.script->arena;
    p->frame.area = p->places.area =
        (ms_box){96.0, 0.0, MS_FRAME_RIGHT - 14.0, AREA_PX};
    set_scales(p);
    MS_TRY(thin(p, fault));
    ms_frame_heading(&p->frame, note_of(p));
    ms_frame_legend(&p->frame, p->families,
                    p->n_families > 1 ? p->n_families : 0);
    double top =
        p->frame.y +
        (p->usable_bytes > 0 || isfinite(p->zone_bytes) ? FLAG_PX : 14.0);
    p->frame.area.y0 = ceil(top);
    p->frame.area.y1 = p->frame.area.y0 + AREA_PX;
    set_scales(p);
    p->places.area = p->frame.area;
    return MS_OK;
}

static void put_axes(struct pareto *p)
{
    ms_text x = {.arena = p->frame.script->arena}, y = x;
    ms_text_add(&x, "peak device memory (%s%s)", p->x_unit->name,
                p->x.is_log ? ", log scale" : "");
    ms_text_add(&y, "step time (%s%s)", p->y_unit->name,
                p->y.is_log ? ", log scale" : "");
    ms_frame_x_axis(&p->frame, &p->x, (double)p->x_unit->size,
                    ms_frame_bytes_of(&p->frame, &x));
    ms_frame_y_axis(&p->frame, &p->y, (double)p->y_unit->size,
                    ms_frame_bytes_of(&p->frame, &y));
}

ms_err ms_figure_pareto(const ms_trade *trades, uint32_t n,
                        uint64_t capacity_bytes, uint64_t usable_bytes,
                        const ms_drawing *drawing, ms_fault *fault)
{
    ms_format format;
    ms_text script = {.arena = drawing->arena};
    struct pareto p = {.frame = ms_frame_of(drawing, &script),
                       .capacity_bytes = capacity_bytes,
                       .usable_bytes = usable_bytes};
    MS_TRY(ms_gnuplot_format(drawing->path, &format, fault));
    if (n == 0)
        return ms_fail(fault, MS_EINPUT, NULL, NULL,
                       "there is nothing to draw");
    MS_TRY(load(&p, trades, n, fault));
    MS_TRY(place(&p, fault));
    double height = p.frame.area.y1 + BELOW_PX;
    ms_frame_begin(&p.frame, format, height);
    put_zone(&p);
    put_axes(&p);
    add_stairs(&p);
    MS_TRY(put_names(&p, fault));
    put_unnamed(&p);
    put_data(&p);
    return ms_gnuplot_draw(&script, format, drawing->path, drawing->script_path,
                           fault);
}
