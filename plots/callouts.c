/* SPDX-License-Identifier: GPL-3.0-or-later */

#include <math.h>
#include <string.h>

#include "plots/frame.h"

#define MOST 40u       /* names in a figure */
#define NAME_PX 235.0  /* wider names are broken in two lines */
#define MOST_PART 0.45 /* of the area: wider lines are cut */
#define LINE_PX 22.0
#define TRIES 4u /* ways to place the names */
#define LEADER "#8A8A8A"

/* ---- a name's lines ------------------------------------------------------ */

static void write_lines(ms_callout *callout, bool is_broken,
                        const ms_places *places)
{
    const char *name = callout->name;
    size_t cut = 0;
    callout->n_lines = 1;
    callout->lines[0] = name;
    callout->width = 0.0;
    if (is_broken || ms_escape_width(name, MS_TEXT_PX, false) > NAME_PX)
        cut = ms_places_break(name);
    if (cut > 0) {
        callout->n_lines = 2;
        callout->lines[0] = ms_arena_text(places->arena, name, cut);
        callout->lines[1] = name + cut + strspn(name + cut, " ");
    }
    for (uint32_t i = 0; i < callout->n_lines && callout->lines[0]; i++)
        callout->width =
            fmax(callout->width,
                 ms_escape_width(callout->lines[i], MS_TEXT_PX, false));
    double most = (places->area.x1 - places->area.x0) * MOST_PART;
    callout->width = fmin(callout->width * MS_FRAME_SLACK, most);
}

double ms_callouts_width(ms_callout *callout, const ms_places *places)
{
    write_lines(callout, false, places);
    return callout->width;
}

/* ---- places -------------------------------------------------------------- */

struct search {
    ms_places *places;
    ms_callout *callouts;
    uint32_t n_best, n, found;
};

/* In one line if it is not long, else in two. */
static void find(struct search *s, uint32_t i)
{
    ms_callout *callout = &s->callouts[i];
    callout->is_placed = false;
    for (int broken = 0; broken < 2 && s->found < MOST; broken++) {
        write_lines(callout, broken == 1, s->places);
        s->places->failed |= callout->lines[0] == NULL;
        if (s->places->failed ||
            !ms_places_find(s->places, callout->x, callout->y, callout->radius,
                            callout->width, callout->n_lines * LINE_PX,
                            i < s->n_best, &callout->place))
            continue;
        callout->is_placed = true;
        s->found++;
        return;
    }
}

/* What is in the middle of what has none, again and again. */
static void find_between(struct search *s, uint32_t first, uint32_t last)
{
    if (last - first < 2 || s->found == MOST)
        return;
    uint32_t middle = first + (last - first) / 2;
    find(s, middle);
    find_between(s, first, middle);
    find_between(s, middle, last);
}

/* The best first, from their ends; the others in either direction; a try also
 * says how gladly names stand above and below their signs. */
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

/* The first try that leaves the fewest without a place. */
uint32_t ms_callouts_find(ms_places *places, ms_callout *callouts,
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
    const ms_name_place *place = &callout->place;
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
