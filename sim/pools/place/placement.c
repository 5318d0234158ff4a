/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Static planning, the greedy rules. */

#include "sim/pools/place/occupied.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The keys: S size, T span, A area, all largest first; l the first use. */
const ms_placement_row ms_placement_rows[MS_PLACEMENT_N_RULES] = {
    {"size", "largest first, lowest gap (TensorFlow Lite Micro)", "Sl",
     MS_PLACEMENT_FIRST},
    {"size-best", "largest first, smallest gap (TensorFlow Lite)", "Sl",
     MS_PLACEMENT_BEST},
    {"span-best", "longest life first, smallest gap", "TS", MS_PLACEMENT_BEST},
    {"area", "largest size times life first, lowest gap", "A",
     MS_PLACEMENT_FIRST},
    {"start", "first use first, lowest gap", "lS", MS_PLACEMENT_FIRST},
    {"start-best", "first use first, smallest gap", "lS", MS_PLACEMENT_BEST},
    {"xla-spatial", "largest first, smallest gap (XLA)", "ST",
     MS_PLACEMENT_TOP},
    {"xla-temporal", "longest life first, smallest gap (XLA)", "TS",
     MS_PLACEMENT_TOP},
};

/* ---- orders -------------------------------------------------------------- */

#define MOST_KEYS 2u

typedef struct ticket {
    uint64_t keys[MOST_KEYS];
    uint32_t id;
} ticket;

static int by_keys(const void *left, const void *right)
{
    const ticket *a = left, *b = right;
    for (uint32_t i = 0; i < MOST_KEYS; i++)
        if (a->keys[i] != b->keys[i])
            return a->keys[i] < b->keys[i] ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

/* 128 bits: high to *high. */
static uint64_t multiply(uint64_t a, uint64_t b, uint64_t *high)
{
    const uint64_t mask = UINT32_MAX;
    uint64_t low = (a & mask) * (b & mask);
    uint64_t left = (a >> 32) * (b & mask) + (low >> 32);
    uint64_t right = (a & mask) * (b >> 32) + (left & mask);
    *high = (a >> 32) * (b >> 32) + (left >> 32) + (right >> 32);
    return (right << 32) | (low & mask);
}

static void put_keys(const ms_placement_buffer *b, const char *keys, ticket *t)
{
    uint64_t high = 0;
    for (uint32_t i = 0; keys[i] != '\0'; i++) {
        if (keys[i] == 'S')
            t->keys[i] = ~b->bytes;
        else if (keys[i] == 'T')
            t->keys[i] = ~(b->upper - b->lower);
        else if (keys[i] == 'l')
            t->keys[i] = b->lower;
        else { /* the area: both keys */
            t->keys[1] = ~multiply(b->bytes, b->upper - b->lower, &high);
            t->keys[0] = ~high;
        }
    }
}

/* ---- lives as ranks ------------------------------------------------------ */

static int by_number(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

static uint32_t rank_of(const uint64_t *times, uint32_t n, uint64_t time)
{
    uint32_t low = 0, high = n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (times[middle] < time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

ms_err ms_placement_rank(const ms_placement_buffer *buffers, uint32_t n,
                         ms_arena *arena, ms_placement_life *lives,
                         uint32_t *n_times, ms_fault *fault)
{
    uint64_t *times = ms_arena_take(arena, (size_t)n + 1, 2 * sizeof *times);
    uint32_t n_distinct = 0;
    if (times == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < n; i++) {
        assert(buffers[i].lower < buffers[i].upper);
        times[2 * i] = buffers[i].lower;
        times[2 * i + 1] = buffers[i].upper;
    }
    qsort(times, (size_t)n * 2, sizeof *times, by_number);
    for (uint32_t i = 0; i < 2 * n; i++)
        if (n_distinct == 0 || times[n_distinct - 1] != times[i])
            times[n_distinct++] = times[i];
    for (uint32_t i = 0; i < n; i++) {
        lives[i].lower = rank_of(times, n_distinct, buffers[i].lower);
        lives[i].upper = rank_of(times, n_distinct, buffers[i].upper);
    }
    *n_times = n_distinct;
    return MS_OK;
}

static ms_err check_sizes(const ms_placement_buffer *buffers, uint32_t n,
                          ms_fault *fault)
{
    uint64_t left = MS_PLACEMENT_MOST_BYTES;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t slack = buffers[i].align > 1 ? buffers[i].align - 1 : 0;
        if (slack > left || buffers[i].bytes > left - slack)
            return ms_fail(fault, MS_EINPUT, NULL, NULL,
                           "the buffers together are larger than 2^62 bytes");
        left -= buffers[i].bytes + slack;
    }
    return MS_OK;
}

ms_err ms_placement_bound(const ms_placement_buffer *buffers, uint32_t n,
                          ms_arena *arena, uint64_t *bytes, ms_fault *fault)
{
    uint32_t n_times;
    uint64_t live = 0;
    ms_placement_life *lives =
        ms_arena_take(arena, (size_t)n + 1, sizeof *lives);
    uint64_t *change = ms_arena_take(arena, (size_t)n + 1, 2 * sizeof *change);
    if (lives == NULL || change == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(check_sizes(buffers, n, fault));
    MS_TRY(ms_placement_rank(buffers, n, arena, lives, &n_times, fault));
    for (uint32_t i = 0; i < n; i++) { /* modulo 2^64: sums come out right */
        change[lives[i].lower] += buffers[i].bytes;
        change[lives[i].upper] -= buffers[i].bytes;
    }
    *bytes = 0;
    for (uint32_t t = 0; t < n_times; t++) {
        live += change[t];
        if (live > *bytes)
            *bytes = live;
    }
    return MS_OK;
}

/* ---- gaps ---------------------------------------------------------------- */

typedef struct plan {
    const ms_placement_buffer *buffers;
    ms_placement_life *lives;
    ms_occupied occupied;
    uint64_t *offsets, height;
} plan;

static uint64_t aligned(uint64_t offset, uint64_t align)
{
    uint64_t over = align > 1 ? offset % align : 0;
    return over > 0 ? offset + align - over : offset;
}

/* The last gap has no end: a plan grows there only where nothing else is left,
 * or where fit is TOP and it is tight below the height so far. */
static uint64_t find_gap(plan *p, uint32_t id, ms_placement_fit fit)
{
    const ms_placement_buffer *b = &p->buffers[id];
    uint64_t found = 0, smallest = UINT64_MAX, front;
    ms_occupied_span gap = {0, 0};
    ms_occupied_look(&p->occupied, p->lives[id]);
    for (;;) {
        gap = ms_occupied_gap(&p->occupied, gap.to);
        front = aligned(gap.from, b->align);
        if (gap.to == UINT64_MAX)
            break;
        if (front + b->bytes > gap.to || gap.to - front >= smallest)
            continue;
        found = front;
        smallest = gap.to - front;
        if (fit == MS_PLACEMENT_FIRST)
            return found;
    }
    bool top = fit == MS_PLACEMENT_TOP && front + b->bytes <= p->height &&
               p->height - front < smallest;
    return top || smallest == UINT64_MAX ? front : found;
}

static ms_err put(plan *p, uint32_t id, uint64_t offset, ms_fault *fault)
{
    uint64_t end = offset + p->buffers[id].bytes;
    p->offsets[id] = offset;
    p->height = end > p->height ? end : p->height;
    return ms_occupied_put(&p->occupied, p->lives[id],
                           (ms_occupied_span){offset, end}, fault);
}

/* In the order of the rule. */
static ms_err put_all(plan *p, uint32_t n, const ms_placement_row *row,
                      ms_arena *arena, ms_fault *fault)
{
    size_t room = (size_t)n + 1;
    uint32_t n_times;
    ticket *tickets = ms_arena_take(arena, room, sizeof *tickets);
    p->lives = ms_arena_take(arena, room, sizeof *p->lives);
    if (tickets == NULL || p->lives == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(ms_placement_rank(p->buffers, n, arena, p->lives, &n_times, fault));
    MS_TRY(ms_occupied_begin(&p->occupied, n_times, arena, fault));
    for (uint32_t i = 0; i < n; i++) {
        tickets[i].id = i;
        put_keys(&p->buffers[i], row->keys, &tickets[i]);
    }
    qsort(tickets, n, sizeof *tickets, by_keys);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t id = tickets[i].id;
        MS_TRY(put(p, id, find_gap(p, id, row->fit), fault));
    }
    return MS_OK;
}

ms_err ms_placement_greedy(const ms_placement_buffer *buffers, uint32_t n,
                           ms_placement_rule rule, uint64_t *offsets,
                           uint64_t *height, ms_fault *fault)
{
    plan p = {.buffers = buffers, .offsets = offsets};
    ms_arena own = {0};
    ms_err err = check_sizes(buffers, n, fault);
    if (err == MS_OK)
        err = put_all(&p, n, &ms_placement_rows[rule], &own, fault);
    ms_arena_free(&own);
    *height = p.height;
    return err;
}
