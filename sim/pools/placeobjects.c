/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Static planning with shared objects, greedy in the order of first use. */

#include "sim/pools/placement.h"

#include <stdlib.h>

typedef struct ticket {
    uint64_t lower;
    uint32_t id;
} ticket;

static int by_start(const void *left, const void *right)
{
    const ticket *a = left, *b = right;
    if (a->lower != b->lower)
        return a->lower < b->lower ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* Of the free ones the nearest in size; of two as near the larger, which need
 * not grow; of two of one size the first.  MS_NONE: none is free. */
static uint32_t find_object(const uint64_t *bytes, const uint64_t *free_at,
                            uint32_t n, const ms_placement_buffer *buffer)
{
    uint32_t found = MS_NONE;
    for (uint32_t i = 0; i < n; i++) {
        if (free_at[i] > buffer->lower)
            continue;
        if (found == MS_NONE) {
            found = i;
            continue;
        }
        uint64_t now = distance(bytes[i], buffer->bytes);
        uint64_t best = distance(bytes[found], buffer->bytes);
        if (now < best || (now == best && bytes[i] > bytes[found]))
            found = i;
    }
    return found;
}

ms_err ms_placeobjects_greedy(const ms_placement_buffer *buffers, uint32_t n,
                              ms_arena *arena, uint32_t *objects,
                              uint64_t *object_bytes, uint32_t *n_objects,
                              ms_fault *fault)
{
    ticket *tickets = ms_arena_take(arena, (size_t)n + 1, sizeof *tickets);
    uint64_t *free_at = ms_arena_take(arena, (size_t)n + 1, sizeof *free_at);
    if (tickets == NULL || free_at == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < n; i++)
        tickets[i] = (ticket){buffers[i].lower, i};
    qsort(tickets, n, sizeof *tickets, by_start);
    *n_objects = 0;
    for (uint32_t i = 0; i < n; i++) {
        const ms_placement_buffer *buffer = &buffers[tickets[i].id];
        uint32_t at = find_object(object_bytes, free_at, *n_objects, buffer);
        if (at == MS_NONE) {
            at = (*n_objects)++;
            object_bytes[at] = 0;
        }
        if (object_bytes[at] < buffer->bytes)
            object_bytes[at] = buffer->bytes;
        free_at[at] = buffer->upper;
        objects[tickets[i].id] = at;
    }
    return MS_OK;
}
