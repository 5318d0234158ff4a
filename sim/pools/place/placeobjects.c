/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Static planning with shared objects: greedy in the order of first use, and
 * the assignment that makes them smallest if each buffer either takes over the
 * object of one that ended or opens a new one. */

#include "sim/pools/place/placement.h"

#include <assert.h>
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

/* ---- the cheapest assignment --------------------------------------------- */

/* What a takeover costs: bytes that the object grows by; of those that cost
 * the same, the one that leaves the least unused. */
typedef struct price {
    int64_t growth, unused;
} price;

static const price no_price = {INT64_MAX, INT64_MAX};

static bool cheaper(price a, price b)
{
    return a.growth != b.growth ? a.growth < b.growth : a.unused < b.unused;
}

static price minus(price a, price b)
{
    return (price){a.growth - b.growth, a.unused - b.unused};
}

/* Rows are the buffers; column i < n, a new object for buffer i alone; column
 * n + i, the object that buffer i leaves.  Rows and columns count from 1; row
 * 0 and column 0 are where a path begins. */
typedef struct market {
    const ms_placement_buffer *buffers;
    uint32_t n, n_columns;
    price *of_row, *of_column, *best; /* duals; best: of a path to a column */
    uint32_t *row, *from;             /* a column's row; the path's last one */
    bool *seen;
} market;

static bool find_price(const market *m, uint32_t row, uint32_t column,
                       price *found)
{
    const ms_placement_buffer *b = &m->buffers[row - 1];
    if (column <= m->n) {
        *found = (price){(int64_t)b->bytes, 0};
        return column == row;
    }
    const ms_placement_buffer *left = &m->buffers[column - 1 - m->n];
    int64_t more = (int64_t)b->bytes - (int64_t)left->bytes;
    *found = (price){more > 0 ? more : 0, more < 0 ? -more : 0};
    return left->upper <= b->lower;
}

/* The cheapest column that no path has reached; of two as cheap that which
 * was left last. */
static uint32_t reach(market *m, uint32_t column)
{
    uint32_t row = m->row[column], found = 0;
    for (uint32_t c = m->n_columns; c > 0; c--) {
        price now;
        if (m->seen[c])
            continue;
        if (find_price(m, row, c, &now)) {
            now = minus(minus(now, m->of_row[row]), m->of_column[c]);
            if (cheaper(now, m->best[c])) {
                m->best[c] = now;
                m->from[c] = column;
            }
        }
        if (m->best[c].growth != INT64_MAX &&
            (found == 0 || cheaper(m->best[c], m->best[found])))
            found = c;
    }
    assert(found > 0); /* a new object is always to be had */
    return found;
}

static void pay(market *m, price delta)
{
    const price nothing = {0, 0}, credit = minus(nothing, delta);
    for (uint32_t c = 0; c <= m->n_columns; c++) {
        if (m->seen[c]) {
            m->of_row[m->row[c]] = minus(m->of_row[m->row[c]], credit);
            m->of_column[c] = minus(m->of_column[c], delta);
        } else if (m->best[c].growth != INT64_MAX)
            m->best[c] = minus(m->best[c], delta);
    }
}

/* The Hungarian method: a path over which one more row finds a column. */
static void serve(market *m, uint32_t row)
{
    uint32_t column = 0;
    m->row[0] = row;
    for (uint32_t c = 0; c <= m->n_columns; c++) {
        m->best[c] = no_price;
        m->seen[c] = false;
    }
    do {
        m->seen[column] = true;
        uint32_t next = reach(m, column);
        pay(m, m->best[next]);
        column = next;
    } while (m->row[column] != 0);
    while (column != 0) {
        uint32_t back = m->from[column];
        m->row[column] = m->row[back];
        column = back;
    }
}

static ms_err make_market(market *m, ms_arena *arena, ms_fault *fault)
{
    size_t room = (size_t)m->n_columns + 1;
    m->of_row = ms_arena_take(arena, room, sizeof *m->of_row);
    m->of_column = ms_arena_take(arena, room, sizeof *m->of_column);
    m->best = ms_arena_take(arena, room, sizeof *m->best);
    m->row = ms_arena_take(arena, room, sizeof *m->row);
    m->from = ms_arena_take(arena, room, sizeof *m->from);
    m->seen = ms_arena_take(arena, room, sizeof *m->seen);
    return m->of_row != NULL && m->of_column != NULL && m->best != NULL &&
                   m->row != NULL && m->from != NULL && m->seen != NULL
               ? MS_OK
               : ms_fail_nomem(fault);
}

ms_err ms_placeobjects_flow(const ms_placement_buffer *buffers, uint32_t n,
                            ms_arena *arena, uint32_t *objects,
                            uint64_t *object_bytes, uint32_t *n_objects,
                            ms_fault *fault)
{
    if (n > MS_PLACEOBJECTS_MOST)
        return ms_fail(fault, MS_EINPUT, NULL, NULL,
                       "the cheapest assignment is for at most %u buffers",
                       MS_PLACEOBJECTS_MOST);
    market m = {.buffers = buffers, .n = n, .n_columns = 2 * n};
    ticket *tickets = ms_arena_take(arena, (size_t)n + 1, sizeof *tickets);
    uint32_t *left = ms_arena_take(arena, (size_t)n + 1, sizeof *left);
    if (tickets == NULL || left == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(make_market(&m, arena, fault));
    for (uint32_t row = 1; row <= n; row++)
        serve(&m, row);
    for (uint32_t i = 0; i < n; i++) {
        tickets[i] = (ticket){buffers[i].lower, i};
        left[i] = MS_NONE;
    }
    for (uint32_t i = 0; i < n; i++)
        if (m.row[n + 1 + i] != 0)
            left[m.row[n + 1 + i] - 1] = i;
    qsort(tickets, n, sizeof *tickets, by_start);
    *n_objects = 0;
    for (uint32_t i = 0; i < n; i++) {
        /* A buffer takes the object of the one that it follows (column n + 1 +
         * i: buffer i), which by start times has its object already. */
        uint32_t of = tickets[i].id;
        objects[of] = left[of] != MS_NONE ? objects[left[of]] : *n_objects;
        if (left[of] == MS_NONE)
            object_bytes[(*n_objects)++] = 0;
        if (object_bytes[objects[of]] < buffers[of].bytes)
            object_bytes[objects[of]] = buffers[of].bytes;
    }
    return MS_OK;
}

/* ---- one buffer for all -------------------------------------------------- */

/* Each member lies as low in its object as its alignment allows. */
static uint64_t put_object(const ms_placement_buffer *buffers, uint32_t n,
                           const uint32_t *objects, uint32_t object,
                           uint64_t at, uint64_t *offsets)
{
    uint64_t end = at;
    for (uint32_t i = 0; i < n; i++) {
        if (objects[i] != object)
            continue;
        uint64_t over = buffers[i].align > 1 ? at % buffers[i].align : 0;
        offsets[i] = over > 0 ? at + buffers[i].align - over : at;
        if (offsets[i] + buffers[i].bytes > end)
            end = offsets[i] + buffers[i].bytes;
    }
    return end;
}

void ms_placeobjects_offsets(const ms_placement_buffer *buffers, uint32_t n,
                             const uint32_t *objects, uint32_t n_objects,
                             uint64_t *offsets, uint64_t *height)
{
    *height = 0;
    for (uint32_t k = 0; k < n_objects; k++)
        *height = put_object(buffers, n, objects, k, *height, offsets);
}
