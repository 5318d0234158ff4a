/* SPDX-License-Identifier: GPL-3.0-or-later */
/* In which order points are simulated: those that share a graph one after the
 * other, wherever the grid has them. */

#include "tools/cli/sweep/sweep.h"
#include "tools/job/settings_table.h"

#include <stdlib.h>

/* The items of a window with what they share: the number that their point would
 * have if each late setting had its first value. */
typedef struct ticket {
    uint64_t group;
    uint32_t item;
} ticket;

static int by_group(const void *left, const void *right)
{
    const ticket *a = left, *b = right;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    return (a->item > b->item) - (a->item < b->item);
}

static bool is_late(const ms_axis *axis)
{
    const ms_setting *row = ms_settings_table_find(axis->key);
    return row != NULL && row->is_late;
}

static uint64_t group_of(const ms_grid *grid, uint64_t point)
{
    uint64_t group = point;
    for (uint32_t a = 0; a < grid->n_axes; a++)
        if (is_late(&grid->axes[a]))
            group -= ms_grid_index(grid, point, a) * grid->axes[a].stride;
    return group;
}

ms_err ms_sweep_order(const ms_sweep *sweep, uint32_t first, uint32_t n,
                      ms_arena *arena, uint32_t **order, ms_fault *fault)
{
    ticket *tickets = ms_arena_take_raw(arena, n, sizeof *tickets);
    *order = ms_arena_take_raw(arena, n, sizeof **order);
    if (tickets == NULL || *order == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t point = ms_sweep_rows_point(sweep, first + i);
        tickets[i] = (ticket){group_of(sweep->grid, point), i};
    }
    qsort(tickets, n, sizeof *tickets, by_group);
    for (uint32_t i = 0; i < n; i++)
        (*order)[i] = tickets[i].item;
    return MS_OK;
}
