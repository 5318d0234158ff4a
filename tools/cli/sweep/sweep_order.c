/* SPDX-License-Identifier: GPL-3.0-or-later */
/* In which order points are simulated: those that share a graph one after the
 * other, wherever the grid has them, and those whose graphs differ in numbers
 * alone, by batch or sequence, near each other: they share what folds learn. */

#include "graphs/field.h"
#include "graphs/training.h"
#include "tools/cli/sweep/sweep.h"
#include "tools/job/settings_table.h"

#include <stdlib.h>
#include <string.h>

/* The items of a window with what they share: the number that their point would
 * have if each late setting had its first value, the same where counts have,
 * too, and the shape that their policies ask for. */
typedef struct ticket {
    uint64_t group, family;
    uint32_t shape, item;
} ticket;

/* An axis of late settings, or of counts. */
typedef struct shared_axis {
    uint32_t axis;
    bool late;
} shared_axis;

/* ---- policies ------------------------------------------------------------ */

/* Samples that most numbers of micro-batches and of ranks divide. */
#define SAMPLES 5040u
#define MOST_SHAPES 256u /* that one is compared with */

/* What the policies ask of a graph, whatever the rest of the job is; false:
 * that cannot be said. */
static bool shape_of(const ms_job *base, const ms_spec *spec, ms_shape *shape)
{
    ms_fault ignored = {.caret = -1};
    memset(shape, 0, sizeof *shape);
    shape->batch = SAMPLES;
    shape->micro_batches = shape->data_ranks = 1;
    shape->gpus = base->gpus;
    return ms_apply_shape(spec, shape, &ignored) == MS_OK;
}

ms_err ms_sweep_order_policy(const ms_job *base, const ms_spec *spec,
                             ms_arena *arena, ms_sweep_shapes *shapes,
                             uint32_t *shape, ms_fault *fault)
{
    ms_shape own;
    bool known = shape_of(base, spec, &own);
    uint32_t least = shapes->n > MOST_SHAPES ? shapes->n - MOST_SHAPES : 0;
    for (uint32_t i = shapes->n; known && i-- > least;) {
        const void *a = &shapes->shape[i], *b = &own;
        *shape = i;
        if (memcmp(a, b, sizeof own) == 0)
            return MS_OK;
    }
    *shape = shapes->n;
    ms_shape *grown = ms_arena_grow(arena, shapes->shape, &shapes->capacity,
                                    shapes->n + 1, sizeof *grown);
    if (grown == NULL)
        return ms_fail_nomem(fault);
    shapes->shape = grown;
    memcpy(&grown[shapes->n++], &own, sizeof own);
    return MS_OK;
}

/* ---- the order ----------------------------------------------------------- */

static int by_group(const void *left, const void *right)
{
    const ticket *a = left, *b = right;
    if (a->family != b->family)
        return a->family < b->family ? -1 : 1;
    if (a->shape != b->shape)
        return a->shape < b->shape ? -1 : 1;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    return (a->item > b->item) - (a->item < b->item);
}

static bool is_late(const ms_axis *axis)
{
    const ms_setting *row = ms_settings_table_find(axis->key);
    return axis->specs != NULL || (row != NULL && row->is_late);
}

/* Is it a number of the training's: of samples, of tokens? */
static bool is_count(const ms_axis *axis)
{
    uint32_t row = ms_training_row(axis->key);
    return row != MS_NONE && ms_training_fields[row].type == MS_INT;
}

/* *shared has room for all axes. */
static uint32_t find_shared(const ms_grid *grid, shared_axis *shared)
{
    uint32_t n = 0;
    for (uint32_t a = 0; a < grid->n_axes; a++)
        if (is_late(&grid->axes[a]) || is_count(&grid->axes[a]))
            shared[n++] = (shared_axis){a, is_late(&grid->axes[a])};
    return n;
}

static ticket ticket_of(const ms_sweep *sweep, const shared_axis *shared,
                        uint32_t n_shared, uint64_t point, uint32_t item)
{
    const ms_grid *grid = sweep->grid;
    ticket it = {.group = point, .family = point, .item = item};
    for (uint32_t i = 0; i < n_shared; i++) {
        uint32_t axis = shared[i].axis;
        uint32_t value = ms_grid_index(grid, point, axis);
        it.family -= value * grid->axes[axis].stride;
        if (shared[i].late)
            it.group -= value * grid->axes[axis].stride;
    }
    if (sweep->shapes != NULL)
        it.shape = sweep->shapes[ms_grid_spec_index(grid, point)];
    return it;
}

/* Neighbours that share a graph, at most so many. */
static void cut(const ticket *tickets, uint32_t n, uint32_t most,
                ms_sweep_order *order)
{
    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && tickets[end].group == tickets[i].group &&
                          tickets[end].shape == tickets[i].shape;
             end++)
            ;
        for (uint32_t at = i; at < end; at += most)
            order->batches[order->n++] =
                (ms_sweep_batch){.first = at,
                                 .n = end - at < most ? end - at : most,
                                 .coming = end - at};
    }
}

ms_err ms_sweep_order_find(const ms_sweep *sweep, uint32_t first, uint32_t n,
                           uint32_t most, ms_arena *arena,
                           ms_sweep_order *order, ms_fault *fault)
{
    uint32_t axes = sweep->grid->n_axes;
    ticket *tickets = ms_arena_take_raw(arena, n, sizeof *tickets);
    shared_axis *shared = ms_arena_take_raw(arena, axes + 1, sizeof *shared);
    *order = (ms_sweep_order){
        .item = ms_arena_take_raw(arena, n, sizeof *order->item),
        .batches = ms_arena_take_raw(arena, n, sizeof *order->batches)};
    if (tickets == NULL || shared == NULL || order->item == NULL ||
        order->batches == NULL)
        return ms_fail_nomem(fault);
    uint32_t n_shared = find_shared(sweep->grid, shared);
    for (uint32_t i = 0; i < n; i++)
        tickets[i] = ticket_of(sweep, shared, n_shared,
                               ms_sweep_rows_point(sweep, first + i), i);
    qsort(tickets, n, sizeof *tickets, by_group);
    for (uint32_t i = 0; i < n; i++)
        order->item[i] = tickets[i].item;
    cut(tickets, n, most, order);
    return MS_OK;
}
