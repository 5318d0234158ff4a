/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Greedy: a name takes the best place that is left, of a short list around
 * its sign and then of the same at more and more distance, tied to it by a
 * line. */

#include <math.h>
#include <string.h>

#include "plots/axes/frame.h"
#include "plots/gnuplot/canvas.h"

#define NEAR_PX 4.0 /* from the sign to its name */
#define FAR_PX 15.0 /* from here on a line ties them */
#define EDGE_PX 2.0

/* Where the name lies: its nearest point, in radii and distances from the
 * sign; cost of it there for names that should lie below, and for others. */
static const struct {
    double x, y;
    ms_align align;
    double below, aside;
} sides[] = {
    {1.0, 0.0, MS_LEFT, 1.2, 0.0},    {-1.0, 0.0, MS_RIGHT, 0.0, 0.6},
    {0.8, -0.8, MS_LEFT, 1.4, 0.5},   {0.8, 0.8, MS_LEFT, 1.3, 0.5},
    {-0.8, 0.8, MS_RIGHT, 0.3, 1.0},  {-0.8, -0.8, MS_RIGHT, 1.4, 1.0},
    {0.0, -1.0, MS_CENTER, 1.6, 0.8}, {0.0, 1.0, MS_CENTER, 0.8, 0.8},
};
#define N_SIDES (sizeof sides / sizeof sides[0])
static const double distances_px[] = {NEAR_PX, FAR_PX, 28.0, 44.0, 64.0, 90.0};
#define N_DISTANCES (sizeof distances_px / sizeof distances_px[0])
#define COST_OF_LINE 2.4
#define COST_OF_DISTANCE 1.1

static ms_box *grow(ms_labelplaces *places, ms_box *boxes, uint32_t *capacity,
                    uint32_t n)
{
    boxes = ms_arena_grow(places->arena, boxes, capacity, n, sizeof *boxes);
    places->failed |= boxes == NULL;
    return boxes;
}

void ms_labelplaces_take(ms_labelplaces *places, const ms_box *box)
{
    if (places->failed)
        return;
    places->taken = grow(places, places->taken, &places->taken_capacity,
                         places->n_taken + 1);
    if (!places->failed)
        places->taken[places->n_taken++] = *box;
}

void ms_labelplaces_add_line(ms_labelplaces *places, double x0, double y0,
                             double x1, double y1)
{
    if (places->failed)
        return;
    places->lines = grow(places, places->lines, &places->lines_capacity,
                         places->n_lines + 1);
    if (!places->failed)
        places->lines[places->n_lines++] =
            (ms_box){fmin(x0, x1), fmin(y0, y1), fmax(x0, x1), fmax(y0, y1)};
}

static bool meet(const ms_box *a, const ms_box *b)
{
    return a->x0 <= b->x1 && b->x0 <= a->x1 && a->y0 <= b->y1 && b->y0 <= a->y1;
}

static bool is_free(const ms_labelplaces *places, const ms_box *box)
{
    if (box->x0 < places->area.x0 + EDGE_PX ||
        box->x1 > places->area.x1 - EDGE_PX ||
        box->y0 < places->area.y0 + EDGE_PX ||
        box->y1 > places->area.y1 - EDGE_PX)
        return false;
    for (uint32_t i = 0; i < places->n_taken; i++)
        if (meet(box, &places->taken[i]))
            return false;
    return true;
}

#define LEADER_PARTS 24

static ms_box part_of(const ms_box *leader, int i)
{
    double x = leader->x0 + (leader->x1 - leader->x0) * i / LEADER_PARTS;
    double y = leader->y0 + (leader->y1 - leader->y0) * i / LEADER_PARTS;
    return (ms_box){x, y, x, y};
}

/* A line to a name keeps off what is taken, too; it begins at its sign. */
static bool is_leader_free(const ms_labelplaces *places,
                           const ms_label_place *place)
{
    for (int i = 5; i <= LEADER_PARTS && place->has_leader; i++) {
        ms_box part = part_of(&place->leader, i);
        for (uint32_t t = 0; t < places->n_taken; t++)
            if (meet(&part, &places->taken[t]))
                return false;
    }
    return true;
}

static void take_place(ms_labelplaces *places, const ms_label_place *place)
{
    ms_labelplaces_take(places, &place->box);
    for (int i = 0; i <= LEADER_PARTS && place->has_leader; i++) {
        ms_box part = part_of(&place->leader, i);
        ms_labelplaces_take(places, &part);
    }
}

static double cost_of_lines(const ms_labelplaces *places, const ms_box *box)
{
    double cost = 0.0;
    for (uint32_t i = 0; i < places->n_lines; i++)
        if (meet(box, &places->lines[i]))
            cost += COST_OF_LINE;
    return cost;
}

/* Left end of a box: what stands above or below its sign keeps within the
 * area. */
static double left_of(const ms_labelplaces *places, double x0, double width,
                      ms_align align)
{
    double least = places->area.x0 + EDGE_PX;
    double most = places->area.x1 - EDGE_PX - width;
    if (align == MS_LEFT)
        return x0;
    if (align == MS_RIGHT)
        return x0 - width;
    return fmax(fmin(x0 - width / 2, most), least);
}

static double top_of(double y0, double height, double side)
{
    if (side < -0.9)
        return y0 - height;
    if (side > 0.9)
        return y0;
    return y0 - height * (0.5 - (side > 0.1) * 0.25 + (side < -0.1) * 0.25);
}

/* size: x1 and y1 are width and height. */
static ms_label_place place_at(const ms_labelplaces *places, double x, double y,
                               double radius, const ms_box *size, size_t side,
                               double distance_px)
{
    double off = radius + distance_px;
    double x0 = x + sides[side].x * off, y0 = y + sides[side].y * off;
    ms_label_place place = {.align = sides[side].align,
                            .has_leader = distance_px >= FAR_PX};
    double left = left_of(places, x0, size->x1, sides[side].align);
    double top = top_of(y0, size->y1, sides[side].y);
    double to_x = sides[side].align == MS_LEFT ? x0 - 2.0 : x0 + 2.0;
    place.box = (ms_box){left, top, left + size->x1, top + size->y1};
    place.leader =
        (ms_box){x + sides[side].x * radius, y + sides[side].y * radius,
                 sides[side].align == MS_CENTER ? x : to_x, y0};
    return place;
}

/* A best name's cost on a side: of the side mirrored where they lean up. */
static double cost_below(const ms_labelplaces *places, size_t side)
{
    static const uint8_t mirrored[N_SIDES] = {0, 1, 3, 2, 5, 4, 7, 6};
    return sides[places->leans_up ? mirrored[side] : side].below;
}

/* What a place costs by itself bounds its whole cost from below, so that places
 * which cannot win are left out before the dearer tests. */
bool ms_labelplaces_find(ms_labelplaces *places, double x, double y,
                         double radius, double width, double height, bool below,
                         ms_label_place *place)
{
    const ms_box size = {0.0, 0.0, width, height};
    double best = INFINITY;
    for (size_t d = 0; d < N_DISTANCES; d++)
        for (size_t side = 0; side < N_SIDES; side++) {
            double cost = below ? cost_below(places, side) : sides[side].aside;
            cost += COST_OF_DISTANCE * (double)d;
            cost += sides[side].align == MS_CENTER ? places->off_middle : 0.0;
            if (cost >= best)
                continue;
            ms_label_place at =
                place_at(places, x, y, radius, &size, side, distances_px[d]);
            if (!is_free(places, &at.box) || !is_leader_free(places, &at))
                continue;
            cost += cost_of_lines(places, &at.box);
            if (cost >= best)
                continue;
            best = cost;
            *place = at;
        }
    if (best < INFINITY)
        take_place(places, place);
    return best < INFINITY && !places->failed;
}
