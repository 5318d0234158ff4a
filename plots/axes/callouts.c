/* SPDX-License-Identifier: GPL-3.0-or-later */

#include <math.h>
#include <string.h>

#include "plots/axes/frame.h"
#include "plots/gnuplot/canvas.h"
#include "plots/gnuplot/escape.h"
#include "plots/gnuplot/wrap.h"

#define MOST 40u      /* the most names in a figure */
#define NAME_PX 235.0 /* the widest line of a name */
/* The limit of a line, as a share of the whole name, where the name is broken
 * into two lines: a little over one half, since words have different lengths.
 */
#define BROKEN 0.62
#define LINE_PX 22.0
#define TRIES 4u /* ways to place the names */
#define LEADER "#8A8A8A"

/* ---- a name's lines ------------------------------------------------------ */

static void write_lines(ms_callout *callout, bool is_broken,
                        ms_labelplaces *places)
{
    double limit = NAME_PX, all = ms_escape_width(callout->name, MS_TEXT_PX, 0);
    if (all > limit || is_broken)
        limit = fmin(limit,
                     fmax(all * BROKEN, ms_wrap_least(callout->name, MS_TEXT_PX,
                                                      false, places->arena)));
    callout->lines = ms_wrap_lines(callout->name, MS_TEXT_PX, false, limit,
                                   places->arena, &callout->n_lines);
    places->failed |= callout->lines == NULL;
    if (!places->failed)
        callout->width =
            ms_wrap_width(callout->lines, callout->n_lines, MS_TEXT_PX, false) *
            MS_FRAME_SLACK;
}

double ms_callouts_width(ms_callout *callout, ms_labelplaces *places)
{
    write_lines(callout, false, places);
    return callout->width;
}

/* ---- places -------------------------------------------------------------- */

struct search {
    ms_labelplaces *places;
    ms_callout *callouts;
    uint32_t n_best, n, found;
};

/* In one line if it is not long, else in more. */
static void find(struct search *s, uint32_t i)
{
    ms_callout *callout = &s->callouts[i];
    callout->is_placed = false;
    for (int broken = 0; broken < 2 && s->found < MOST; broken++) {
        write_lines(callout, broken == 1, s->places);
        if (s->places->failed ||
            !ms_labelplaces_find(s->places, callout->x, callout->y,
                                 callout->radius, callout->width,
                                 callout->n_lines * LINE_PX, i < s->n_best,
                                 &callout->place))
            continue;
        callout->is_placed = true;
        s->found++;
        return;
    }
}

/* Tries the trade in the middle of the range, then those in the middle of each
 * half, and so on. */
static void find_between(struct search *s, uint32_t first, uint32_t last)
{
    if (last - first < 2 || s->found == MOST)
        return;
    uint32_t middle = first + (last - first) / 2;
    find(s, middle);
    find_between(s, first, middle);
    find_between(s, middle, last);
}

/* Names of the best points are placed first: those at the ends of the curve,
 * then those between; after them come the others, forward or backward.  The
 * number of the try sets that direction and how much it costs to stand above or
 * below the sign. */
static void search(struct search *s, uint32_t try)
{
    uint32_t others = s->n - s->n_best;
    s->found = 0;
    s->places->off_middle = try < 2 ? 0.0 : 1.5;
    for (uint32_t i = 0; i < s->n; i++)
        s->callouts[i].is_placed = false;
    if (s->n_best > 0)
        find(s, 0);
    if (s->n_best > 1)
        find(s, s->n_best - 1);
    find_between(s, 0, s->n_best > 0 ? s->n_best - 1 : 0);
    for (uint32_t i = 0; i < others; i++)
        find(s, s->n_best + (try % 2 == 0 ? i : others - 1 - i));
}

/* Keeps the first of the tries that leave the fewest names without a place.
 * Each try overwrites the places of the one before, so the best one is repeated
 * at the end. */
uint32_t ms_callouts_find(ms_labelplaces *places, ms_callout *callouts,
                          uint32_t n_best, uint32_t n)
{
    struct search s = {places, callouts, n_best, n, 0};
    uint32_t n_taken = places->n_taken, most = 0, best = 0;
    for (uint32_t try = 0; try <= TRIES && (try == 0 || most < n); try++) {
        places->n_taken = n_taken;
        search(&s, try < TRIES ? try : best);
        if (s.found > most && try < TRIES) {
            most = s.found;
            best = try;
        }
    }
    return s.found;
}

/* ---- the script ---------------------------------------------------------- */

void ms_callouts_put(const ms_frame *frame, const ms_callout *callout,
                     const char *color)
{
    const ms_label_place *place = &callout->place;
    const ms_box *box = &place->box;
    double x = place->align == MS_LEFT    ? box->x0
               : place->align == MS_RIGHT ? box->x1
                                          : (box->x0 + box->x1) / 2;
    if (!callout->is_placed)
        return;
    if (place->has_leader)
        ms_frame_line(frame, place->leader.x0, place->leader.y0,
                      place->leader.x1, place->leader.y1, LEADER, true);
    for (uint32_t i = 0; i < callout->n_lines; i++)
        ms_frame_text(frame, callout->lines[i], x,
                      box->y0 + LINE_PX * (i + 0.5), place->align, color,
                      callout->width);
}
