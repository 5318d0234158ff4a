/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/schedule/squeezed.h"
#include "policies/schedule/orderrow.h"

#include <string.h>

/* Kinds of turns; without SPLIT the weights' halves of both chunks are one
 * list, W1, of twice as many. */
enum { F0, F1, I1, I0, W1, W0, N_LISTS };

#define PERIOD 6u
#define FREE UINT8_MAX

typedef struct squeeze {
    uint32_t p, m;
    uint32_t slots;   /* of a rank; all of its turns lie before */
    uint32_t *time;   /* per rank and list its turns' slots, rising */
    uint32_t *end;    /* the same: when they have run, eagerly */
    uint8_t *was;     /* per rank and slot: the list of what begins there, as it
                         was before the squeeze */
    uint8_t *is;      /* the same, as it is */
    uint32_t *level;  /* per rank and slot: sets of activations held */
    uint32_t *cursor; /* per rank and list */
} squeeze;

static uint32_t *list_of(const squeeze *q, uint32_t *of, uint32_t r,
                         uint32_t list)
{
    return of + ((size_t)r * N_LISTS + list) * q->m;
}

static uint32_t length_of(const squeeze *q, uint32_t list, bool split)
{
    return list == W1 && !split ? 2 * q->m : q->m;
}

/* Lists that there are: with the weights' halves or without. */
static uint32_t lists_of(bool weights, bool split)
{
    return !weights ? W1 : split ? N_LISTS : W1 + 1u;
}

/* ---- slots --------------------------------------------------------------- */

static void begin(squeeze *q, ms_order order)
{
    uint32_t p = q->p;
    bool half = order == MS_ORDER_V_HALF;
    uint32_t apart = half ? (p % 2 == 0 ? 3 : 0) : p % 3 == 0 ? 2 : 0;
    for (uint32_t r = 0; r < p; r++) {
        const uint32_t narrow[] = {r, 2 * p - 1 - r, 2 * p + apart + r,
                                   4 * p + apart - 1 - r};
        const uint32_t wide[] = {2 * r, 3 * p - 2 - r,
                                 3 * p + apart + 2 * r - 1,
                                 6 * p + apart - 2 - r};
        for (uint32_t list = F0; list <= I0; list++)
            for (uint32_t k = 0; k < q->m; k++)
                list_of(q, q->time, r, list)[k] =
                    (half ? wide : narrow)[list] + PERIOD * k;
    }
}

/* What begins when on a rank. */
static void lay_out(const squeeze *q, uint32_t r, uint32_t lists, bool split,
                    uint8_t *slots)
{
    memset(slots, FREE, q->slots);
    for (uint32_t list = 0; list < lists; list++)
        for (uint32_t k = 0; k < length_of(q, list, split); k++)
            slots[list_of(q, q->time, r, list)[k]] = (uint8_t)list;
}

/* Behind the last of a rank's forwards and inputs' halves. */
static uint32_t bound_of(const squeeze *q, uint32_t r)
{
    uint32_t bound = 0;
    for (uint32_t list = F0; list <= I0; list++) {
        uint32_t last = list_of(q, q->time, r, list)[q->m - 1];
        bound = last + 1 > bound ? last + 1 : bound;
    }
    return bound;
}

/* The weights' halves in the first free slots behind the inputs' ones. */
static void put_weights(squeeze *q, bool split)
{
    for (uint32_t r = 0; r < q->p; r++) {
        uint8_t *slots = q->is + (size_t)r * q->slots;
        uint32_t wait[2] = {0, 0}, n[2] = {0, 0};
        lay_out(q, r, W1, split, slots);
        uint32_t bound = bound_of(q, r);
        for (uint32_t t = 0; t < bound || wait[0] + wait[1] > 0; t++) {
            uint8_t list = slots[t];
            if (list == I1 || list == I0)
                wait[split && list == I0]++;
            if (list != FREE || wait[0] + wait[1] == 0)
                continue;
            uint32_t which = wait[0] == 0;
            wait[which]--;
            list_of(q, q->time, r, W1 + which)[n[which]++] = t;
        }
    }
}

/* ---- memory -------------------------------------------------------------- */

/* The most sets that a rank holds; without lists of weights' halves these run
 * as soon as a slot is free. */
static uint32_t most_of(squeeze *q, uint32_t r, const uint8_t *slots,
                        bool weights)
{
    uint32_t *level = q->level + (size_t)r * q->slots;
    uint32_t held = 0, wait = 0, most = 0, bound = bound_of(q, r);
    for (uint32_t t = 0; t < q->slots; t++) {
        uint8_t list = slots[t];
        held += list == F0 || list == F1;
        held -= list == W1;
        wait += list == I1 || list == I0;
        if (!weights && list == FREE && wait > 0 && t < bound) {
            held--;
            wait--;
        }
        level[t] = held;
        most = held > most ? held : most;
    }
    return most;
}

static uint32_t most_of_all(squeeze *q, bool weights)
{
    uint32_t most = 0;
    for (uint32_t r = 0; r < q->p; r++) {
        uint32_t of = most_of(q, r, q->was + (size_t)r * q->slots, weights);
        most = of > most ? of : most;
    }
    return most;
}

/* May a turn of the list begin at `to` instead, where no rank holds more than
 * so many?  Its time is `to` already. */
static bool may_hold(squeeze *q, uint32_t r, uint32_t list, uint32_t from,
                     uint32_t to, bool weights, uint32_t most)
{
    uint8_t *slots = q->was + (size_t)r * q->slots;
    if (!weights) {
        slots[from] = FREE;
        slots[to] = (uint8_t)list;
        bool may = most_of(q, r, slots, false) <= most;
        slots[to] = FREE;
        slots[from] = (uint8_t)list;
        return may;
    }
    const uint32_t *level = q->level + (size_t)r * q->slots;
    for (uint32_t t = to; t < from && list <= F1; t++)
        if (level[t] == most)
            return false;
    return true;
}

/* It has moved. */
static void move(squeeze *q, uint32_t r, uint32_t list, uint32_t from,
                 uint32_t to)
{
    uint32_t *level = q->level + (size_t)r * q->slots;
    uint8_t *slots = q->was + (size_t)r * q->slots;
    for (uint32_t t = to; t < from; t++) {
        level[t] += list <= F1;
        level[t] -= list == W1;
    }
    slots[from] = FREE;
    slots[to] = (uint8_t)list;
}

/* ---- what waits for what ------------------------------------------------- */

/* The rank whose turn of the same list a turn waits for, or p. */
static uint32_t before(const squeeze *q, uint32_t r, uint32_t list)
{
    if (list == F0 || list == I1)
        return r > 0 ? r - 1 : q->p;
    return (list == F1 || list == I0) && r + 1 < q->p ? r + 1 : q->p;
}

/* Slot k, from 0 up, of two rising lists together. */
static uint32_t kth(const uint32_t *a, const uint32_t *b, uint32_t m,
                    uint32_t k)
{
    uint32_t low = k + 1 > m ? k + 1 - m : 0, high = k + 1 < m ? k + 1 : m;
    while (low < high) { /* so many of the first are among them */
        uint32_t i = low + (high - low) / 2;
        if (a[i] < b[k - i])
            low = i + 1;
        else
            high = i;
    }
    uint32_t one = low > 0 ? a[low - 1] : 0;
    uint32_t other = low < k + 1 ? b[k - low] : 0;
    return one > other ? one : other;
}

static void raise(uint32_t *least, uint32_t value)
{
    *least = value > *least ? value : *least;
}

/* The first slot in which turn k of a list may begin. */
static uint32_t earliest(const squeeze *q, uint32_t r, uint32_t list,
                         uint32_t k)
{
    uint32_t least = 0, other = before(q, r, list);
    const uint32_t *own = list_of(q, q->time, r, list);
    if (other < q->p)
        raise(&least, list_of(q, q->time, other, list)[k] + 1);
    if (list > F0 && list <= I0)
        raise(&least, list_of(q, q->time, r, list - 1)[k] + 1);
    if (list == W1)
        raise(&least, kth(list_of(q, q->time, r, I1),
                          list_of(q, q->time, r, I0), q->m, k) +
                          1);
    if (k > 0)
        raise(&least, own[k - 1] + 1);
    return least;
}

/* Each turn begins when all that it waits for has run, in the order of the
 * slots; a turn takes one unit. */
static void run_eagerly(squeeze *q)
{
    memset(q->cursor, 0, (size_t)q->p * N_LISTS * sizeof *q->cursor);
    for (uint32_t r = 0; r < q->p; r++)
        lay_out(q, r, W1 + 1, false, q->is + (size_t)r * q->slots);
    memset(q->level, 0, q->p * sizeof *q->level); /* when a rank is free */
    for (uint32_t t = 0; t < q->slots; t++)
        for (uint32_t r = 0; r < q->p; r++) {
            uint32_t list = q->is[(size_t)r * q->slots + t];
            if (list == FREE)
                continue;
            uint32_t k = q->cursor[r * N_LISTS + list]++, at = q->level[r];
            uint32_t other = before(q, r, list);
            if (other < q->p)
                raise(&at, list_of(q, q->end, other, list)[k]);
            if (list > F0 && list <= I0)
                raise(&at, list_of(q, q->end, r, list - 1)[k]);
            list_of(q, q->end, r, list)[k] = q->level[r] = at + 1;
        }
    for (size_t i = 0; i < (size_t)q->p * N_LISTS * q->m; i++)
        q->time[i] = q->end[i] - 1;
}

/* ---- the squeeze --------------------------------------------------------- */

/* Turn k of a list, which is at `now`, goes to the first free slot. */
static void shift(squeeze *q, uint32_t r, uint32_t list, uint32_t k,
                  uint32_t now, bool weights, uint32_t most)
{
    const uint8_t *taken = q->is + (size_t)r * q->slots;
    uint32_t *time = &list_of(q, q->time, r, list)[k];
    for (uint32_t t = earliest(q, r, list, k); t < now; t++) {
        if (taken[t] != FREE)
            continue;
        *time = t;
        if (may_hold(q, r, list, now, t, weights, most)) {
            move(q, r, list, now, t);
            return;
        }
    }
    *time = now;
}

/* In the order of slots; without weights' halves the middle stays, from the
 * first backward that reaches rank 0 to its last forward, and what is before.
 */
static void reorder(squeeze *q, bool weights)
{
    uint32_t lists = lists_of(weights, false);
    uint32_t phase = 0;
    if (weights)
        put_weights(q, false);
    for (uint32_t r = 0; r < q->p; r++)
        lay_out(q, r, lists, false, q->was + (size_t)r * q->slots);
    uint32_t most = most_of_all(q, weights);
    memset(q->is, FREE, (size_t)q->p * q->slots);
    memset(q->cursor, 0, (size_t)q->p * N_LISTS * sizeof *q->cursor);
    for (uint32_t t = 0; t < q->slots; t++)
        for (uint32_t r = 0; r < q->p; r++) {
            size_t row = (size_t)r * q->slots;
            uint32_t list = q->was[row + t];
            if (list == FREE)
                continue;
            uint32_t k = q->cursor[r * N_LISTS + list]++;
            phase += phase == 0 && list == I0 && r == 0;
            bool stays = phase == 1 || (phase == 0 && !weights);
            if (phase == 1 && list == F0 && k + 1 == q->m)
                phase = 2;
            if (!stays)
                shift(q, r, list, k, t, weights, most);
            q->is[row + list_of(q, q->time, r, list)[k]] = (uint8_t)list;
        }
    if (!weights)
        put_weights(q, false);
    run_eagerly(q);
}

static void write_row(const squeeze *q, ms_orderrow *row)
{
    static const struct {
        ms_turn_kind kind;
        uint32_t chunk;
    } turns[] = {
        [F0] = {MS_TURN_FORWARD, 0},     [F1] = {MS_TURN_FORWARD, 1},
        [I1] = {MS_TURN_GRAD_INPUT, 1},  [I0] = {MS_TURN_GRAD_INPUT, 0},
        [W1] = {MS_TURN_GRAD_WEIGHT, 1}, [W0] = {MS_TURN_GRAD_WEIGHT, 0}};
    const uint8_t *slots = q->is + (size_t)row->rank * q->slots;
    for (uint32_t t = 0; t < q->slots; t++)
        if (slots[t] != FREE)
            ms_orderrow_next(row, turns[slots[t]].kind, turns[slots[t]].chunk);
}

ms_err ms_squeezed_write(ms_order order, const ms_orders_size *size,
                         ms_arena *arena, ms_schedule *schedule,
                         ms_fault *fault)
{
    squeeze q = {.p = size->ranks, .m = size->micro_batches};
    q.slots = PERIOD * (q.p + q.m) + 2 * q.m + PERIOD;
    size_t lists = (size_t)q.p * N_LISTS, slots = (size_t)q.p * q.slots;
    q.time = ms_arena_take(arena, lists * q.m, sizeof *q.time);
    q.end = ms_arena_take(arena, lists * q.m, sizeof *q.end);
    q.cursor = ms_arena_take(arena, lists, sizeof *q.cursor);
    q.was = ms_arena_take_raw(arena, slots, 1);
    q.is = ms_arena_take_raw(arena, slots, 1);
    q.level = ms_arena_take_raw(arena, slots, sizeof *q.level);
    if (!q.time || !q.end || !q.cursor || !q.was || !q.is || !q.level)
        return ms_fail_nomem(fault);
    begin(&q, order);
    reorder(&q, true);
    reorder(&q, false);
    put_weights(&q, true);
    for (uint32_t r = 0; r < q.p; r++) {
        ms_orderrow row = {
            .size = size, .order = order, .rank = r, .schedule = schedule};
        lay_out(&q, r, N_LISTS, true, q.is + (size_t)r * q.slots);
        schedule->turn_at[r + 1] = schedule->turn_at[r];
        write_row(&q, &row);
    }
    return MS_OK;
}
