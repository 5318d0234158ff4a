/* SPDX-License-Identifier: GPL-3.0-or-later */

#include <math.h>

#include "plots/axes/labels.h"
#include "plots/gnuplot/canvas.h"
#include "plots/record/stack.h"

#define ASIDE_PX 16.0 /* from the peak to its label, sideways */
#define ABOVE_PX 12.0 /* and upwards: at least, */
#define NEAR_PX 60.0  /* and at most, to spare the lines of the background */
#define STEP_PX 3.0
#define EDGE_PX 2.0
#define MARGIN_PX 7.0

/* The lines that a label must not cross in one attempt; later attempts allow
 * more of them. */
struct spare {
    bool grid, walls, level; /* of the step without some policies */
};

static bool overlap(const ms_box *a, const ms_box *b)
{
    return a->x0 < b->x1 && b->x0 < a->x1 && a->y0 < b->y1 && b->y0 < a->y1;
}

static bool crosses_grid(const ms_room *room, const ms_box *box)
{
    double below = (room->area.y1 - box->y1) / room->grid_px;
    double above = (room->area.y1 - box->y0 - EDGE_PX) / room->grid_px;
    return floor(above) > floor(below);
}

static bool crosses_wall(const ms_room *room, const ms_box *box)
{
    for (uint32_t i = 0; i < room->n_walls; i++)
        if (room->walls[i] > box->x0 - EDGE_PX &&
            room->walls[i] < box->x1 + EDGE_PX)
            return true;
    return false;
}

static bool crosses_without(const ms_room *room, const ms_box *box)
{
    return room->without != NULL &&
           ms_stack_level_crosses(room->stack, room->without, box);
}

static bool spares(const ms_room *room, const ms_box *box, struct spare spare)
{
    return !(spare.grid && crosses_grid(room, box)) &&
           !(spare.walls && crosses_wall(room, box)) &&
           !(spare.level && crosses_without(room, box));
}

bool ms_labels_on_lines(const ms_room *room, const ms_box *box)
{
    return crosses_grid(room, box) || crosses_wall(room, box) ||
           crosses_without(room, box);
}

static bool is_taken(const ms_room *room, const ms_box *box)
{
    return overlap(box, &room->taken[0]) || overlap(box, &room->taken[1]);
}

/* ---- the peak ------------------------------------------------------------ */

static bool is_free(const ms_room *room, const ms_box *box)
{
    const ms_box wide = {box->x0 - EDGE_PX, box->y0 - EDGE_PX,
                         box->x1 + EDGE_PX, box->y1 + EDGE_PX};
    return !(room->stack != NULL && ms_stack_crosses(room->stack, &wide)) &&
           box->x0 >= room->area.x0 + EDGE_PX &&
           box->x1 <= room->area.x1 - EDGE_PX &&
           box->y0 >= room->area.y0 + EDGE_PX &&
           (room->line_y < box->y0 || room->line_y > box->y1);
}

static bool search(const ms_room *room, double x, double y, ms_box *box,
                   bool left_first, struct spare spare, double most_px)
{
    double width = box->x1 - box->x0, height = box->y1 - box->y0;
    for (double up = ABOVE_PX; up <= most_px; up += STEP_PX)
        for (int side = 0; side <= 1; side++) {
            bool to_left = (side == 0) == left_first;
            double x0 = to_left ? x - ASIDE_PX - width : x + ASIDE_PX;
            *box = (ms_box){x0, y - up - height, x0 + width, y - up};
            if (is_free(room, box) && spares(room, box, spare))
                return true;
        }
    return false;
}

ms_box ms_labels_peak(const ms_room *room, double x, double y, double width,
                      double height, bool left_first)
{
    static const struct spare all = {true, true, true},
                              grid = {true, false, true},
                              level = {false, false, true}, nothing = {0};
    ms_box box = {0.0, 0.0, width, height};
    if (search(room, x, y, &box, left_first, all, NEAR_PX) ||
        search(room, x, y, &box, left_first, grid, NEAR_PX) ||
        search(room, x, y, &box, left_first, level, NEAR_PX) ||
        search(room, x, y, &box, left_first, nothing, y))
        return box;
    /* Where there is no room on either side (a label as wide as the area), the
     * label goes to the top. */
    double x0 = fmax(room->area.x0 + EDGE_PX,
                     fmin(x - width / 2, room->area.x1 - EDGE_PX - width));
    double y0 = room->area.y0 + EDGE_PX;
    return (ms_box){x0, y0, x0 + width, y0 + height};
}

/* ---- the capacity -------------------------------------------------------- */

/* Moves box along its row, from the side that the peak is not on, to the first
 * place above the areas. */
static bool slide(const ms_room *room, const ms_stack *stack, ms_box *box,
                  double peak_x, struct spare spare)
{
    double width = box->x1 - box->x0;
    double left = room->area.x0 + MARGIN_PX;
    double most = room->area.x1 - MARGIN_PX - width - left;
    bool from_left = peak_x > (room->area.x0 + room->area.x1) / 2;
    for (double aside = 0.0; aside <= most; aside += STEP_PX) {
        box->x0 = left + (from_left ? aside : most - aside);
        box->x1 = box->x0 + width;
        uint64_t highest =
            ms_stack_highest(stack, box->x0 - EDGE_PX, box->x1 + EDGE_PX);
        if (ms_stack_y(stack, (double)highest) >= box->y1 &&
            !ms_stack_crosses(stack, box) && !is_taken(room, box) &&
            spares(room, box, spare))
            return true;
    }
    return false;
}

bool ms_labels_line(const ms_room *room, const ms_stack *stack, double peak_x,
                    double width, double height, ms_box *box)
{
    static const struct {
        bool below;
        struct spare spare;
    } tries[] = {{false, {true, true, true}},  {true, {true, true, true}},
                 {false, {false, true, true}}, {false, {false, false, true}},
                 {true, {false, false, true}}, {false, {false, false, false}},
                 {true, {false, false, false}}};
    *box = (ms_box){0.0, 0.0, width, height};
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        box->y0 = room->line_y + (tries[i].below ? 1.0 : -1.0 - height);
        box->y1 = box->y0 + height;
        if (slide(room, stack, box, peak_x, tries[i].spare))
            return true;
    }
    /* Below the line rather than on what exceeds it, if the axis is not near.
     */
    bool below = room->line_y + 1.0 + height < room->area.y1;
    double y0 = room->line_y + (below ? 1.0 : -1.0 - height);
    double x0 = room->area.x0 + MARGIN_PX;
    *box = (ms_box){x0, y0, x0 + width, y0 + height};
    if (is_taken(room, box)) {
        box->x1 = room->area.x1 - MARGIN_PX;
        box->x0 = box->x1 - width;
    }
    return false;
}

bool ms_labels_top(const ms_room *room, const ms_stack *stack, double peak_x,
                   double width, double height, ms_box *box)
{
    double y0 = room->area.y0 + EDGE_PX;
    *box = (ms_box){0.0, y0, width, y0 + height};
    return slide(room, stack, box, peak_x,
                 (struct spare){.walls = true, .level = true}) ||
           slide(room, stack, box, peak_x, (struct spare){.level = true}) ||
           slide(room, stack, box, peak_x, (struct spare){0});
}
