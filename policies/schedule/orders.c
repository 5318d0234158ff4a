/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/schedule/orders.h"

/* A rank's row under way.  Of each chunk, how many micro-batches have gone
 * forward, back (whole, or the inputs' half), and through the weights' half. */
typedef struct row {
    const ms_orders_size *size;
    ms_order order;
    uint32_t rank;
    ms_schedule *schedule;
    uint32_t done[2][MS_N_TURNS]; /* of zb-v's two chunks */
} row;

/* ---- where stages are ---------------------------------------------------- */

uint16_t ms_orders_rank(ms_order order, const ms_orders_size *size, uint32_t s)
{
    uint32_t p = size->ranks;
    if (order == MS_ORDER_ZB_V && s >= p)
        return (uint16_t)(2 * p - 1 - s);
    return (uint16_t)(s % p);
}

static uint32_t stage_of(const row *w, uint32_t chunk)
{
    uint32_t p = w->size->ranks;
    if (w->order == MS_ORDER_ZB_V && chunk == 1)
        return 2 * p - 1 - w->rank;
    return chunk * p + w->rank;
}

static void put(row *w, ms_turn_kind kind, uint32_t chunk, uint32_t micro_batch)
{
    ms_schedule *schedule = w->schedule;
    uint32_t *n = &schedule->turn_at[w->rank + 1];
    schedule->turns[(*n)++] =
        (ms_turn){stage_of(w, chunk), micro_batch, (uint8_t)kind};
}

static uint32_t least(uint64_t a, uint64_t b)
{
    return (uint32_t)(a < b ? a : b);
}

/* ---- one chunk ----------------------------------------------------------- */

static void write_gpipe(row *w)
{
    for (uint32_t m = 0; m < w->size->micro_batches; m++)
        put(w, MS_TURN_FORWARD, 0, m);
    for (uint32_t m = 0; m < w->size->micro_batches; m++)
        put(w, MS_TURN_BACKWARD, 0, m);
}

static void write_bfs(row *w)
{
    uint32_t n = w->size->micro_batches;
    for (uint32_t c = 0; c < w->size->chunks; c++)
        for (uint32_t m = 0; m < n; m++)
            put(w, MS_TURN_FORWARD, c, m);
    for (uint32_t c = w->size->chunks; c-- > 0;)
        for (uint32_t m = n; m-- > 0;)
            put(w, MS_TURN_BACKWARD, c, m);
}

/* Twice 1F1B's warm-up: no rank ever waits for the last one.  A rank goes on
 * with the weights' half as soon as the forwards that it is ahead of rank
 * p - 1 have come back. */
static void write_zb_h2(row *w)
{
    uint32_t n = w->size->micro_batches, ahead = w->size->ranks - 1 - w->rank;
    uint32_t f = 0, weights = 0;
    while (f < least(n, 2 * (uint64_t)ahead))
        put(w, MS_TURN_FORWARD, 0, f++);
    for (uint32_t i = 0; i < n; i++) {
        if (f < n)
            put(w, MS_TURN_FORWARD, 0, f++);
        put(w, MS_TURN_GRAD_INPUT, 0, i);
        if (i >= 2 * w->rank)
            put(w, MS_TURN_GRAD_WEIGHT, 0, weights++);
    }
    while (weights < n)
        put(w, MS_TURN_GRAD_WEIGHT, 0, weights++);
}

/* ---- chunks in a loop ---------------------------------------------------- */

/* Groups of micro-batches go through one chunk after the other. */
typedef struct loop {
    uint32_t group; /* micro-batches of a group */
    uint32_t total; /* turns of a direction: chunks times micro-batches */
    uint32_t warm;  /* forwards before the first backward */
} loop;

static void put_forward(row *w, const loop *it, uint32_t k)
{
    uint32_t v = w->size->chunks, round = it->group * v;
    put(w, MS_TURN_FORWARD, k / it->group % v,
        k / round * it->group + k % it->group);
}

static void put_back(row *w, const loop *it, ms_turn_kind kind, uint32_t k)
{
    uint32_t v = w->size->chunks, round = it->group * v;
    put(w, kind, v - 1 - k / it->group % v,
        k / round * it->group + k % it->group);
}

static void write_loop(row *w, const loop *it)
{
    uint32_t f = 0;
    while (f < it->warm)
        put_forward(w, it, f++);
    for (uint32_t b = 0; b < it->total; b++) {
        if (f < it->total)
            put_forward(w, it, f++);
        put_back(w, it, MS_TURN_BACKWARD, b);
    }
}

static void write_1f1b(row *w)
{
    uint32_t n = w->size->micro_batches;
    loop it = {n, n, least(n, w->size->ranks - 1 - w->rank)};
    write_loop(w, &it);
}

static void write_interleaved(row *w)
{
    uint32_t p = w->size->ranks, v = w->size->chunks;
    loop it = {.group = p, .total = v * w->size->micro_batches};
    it.warm = least(it.total, (uint64_t)(v - 1) * p + 2 * (p - 1 - w->rank));
    write_loop(w, &it);
}

static void write_zb_h1(row *w)
{
    uint32_t p = w->size->ranks, n = w->size->micro_batches;
    uint32_t v = w->size->chunks, rounds = n / p > 0 ? n / p : 1;
    loop it = {.group = n / rounds, .total = v * n};
    it.warm = least(it.total, (uint64_t)(v - 1) * it.group + (p - 1 - w->rank));
    uint32_t f = 0, weights = 0;
    while (f < it.warm)
        put_forward(w, &it, f++);
    for (uint32_t b = 0; b < it.total; b++) {
        if (f < it.total)
            put_forward(w, &it, f++);
        put_back(w, &it, MS_TURN_GRAD_INPUT, b);
        if (b >= w->rank)
            put_back(w, &it, MS_TURN_GRAD_WEIGHT, weights++);
    }
    while (weights < it.total)
        put_back(w, &it, MS_TURN_GRAD_WEIGHT, weights++);
}

/* ---- a V ----------------------------------------------------------------- */

/* The next turn of the kind of a chunk; where there are fewer micro-batches
 * than the order is written for, an empty cell. */
static void next(row *w, ms_turn_kind kind, uint32_t chunk)
{
    uint32_t micro_batch = w->done[chunk][kind]++;
    if (micro_batch < w->size->micro_batches)
        put(w, kind, chunk, micro_batch);
}

static void next_halves(row *w, uint32_t chunk)
{
    next(w, MS_TURN_GRAD_INPUT, chunk);
    next(w, MS_TURN_GRAD_WEIGHT, chunk);
}

/* pytorch/pytorch torch/distributed/pipelining/schedules.py,
 * ScheduleZBVZeroBubble._calculate_single_rank_operations. */
static void write_zb_v(row *w)
{
    uint32_t p = w->size->ranks, r = w->rank, m = w->size->micro_batches;
    uint32_t n = m > 2 * p - 1 ? m : 2 * p - 1;
    const uint32_t *one = w->done[0], *two = w->done[1];
    for (uint32_t i = 0; i < 2 * (p - r) - 1; i++)
        next(w, MS_TURN_FORWARD, 0);
    for (uint32_t i = 0; i < r; i++) {
        next(w, MS_TURN_FORWARD, 1);
        next(w, MS_TURN_FORWARD, 0);
    }
    for (uint32_t i = 0; i < p - r; i++) {
        next(w, MS_TURN_FORWARD, 1);
        next_halves(w, 1);
    }
    while (two[MS_TURN_FORWARD] < one[MS_TURN_FORWARD] ||
           one[MS_TURN_FORWARD] < n) {
        if (one[MS_TURN_FORWARD] < n)
            next(w, MS_TURN_FORWARD, 0);
        next_halves(w, 0);
        next(w, MS_TURN_FORWARD, 1);
        next_halves(w, 1);
    }
    for (uint32_t i = 0; i < r; i++) {
        next(w, MS_TURN_GRAD_INPUT, 0);
        next(w, MS_TURN_GRAD_INPUT, 1);
    }
    for (uint32_t i = 0; i < p - r; i++)
        next_halves(w, 0);
    for (uint32_t chunk = 2; chunk-- > 0;)
        while (w->done[chunk][MS_TURN_GRAD_WEIGHT] < n)
            next(w, MS_TURN_GRAD_WEIGHT, chunk);
}

/* ---- all of them --------------------------------------------------------- */

uint64_t ms_orders_room(const ms_orders_size *size)
{
    return UINT64_C(3) * size->ranks * size->chunks * size->micro_batches;
}

static ms_err check(ms_order order, const ms_orders_size *size, ms_fault *fault)
{
    uint32_t p = size->ranks, m = size->micro_batches, v = size->chunks;
    uint32_t rounds = m / p > 0 ? m / p : 1;
    bool loops = order == MS_ORDER_INTERLEAVED || order == MS_ORDER_LOOPED_BFS;
    if (order == MS_ORDER_ZB_V ? v != 2
                               : v > 1 && !loops && order != MS_ORDER_ZB_H1)
        return ms_fail(fault, MS_EUSAGE, "pipeline",
                       order == MS_ORDER_ZB_V
                           ? "leave chunks out"
                           : "take schedule=interleaved, or leave chunks out",
                       "this schedule has %s",
                       order == MS_ORDER_ZB_V ? "two chunks per rank"
                                              : "one chunk per rank");
    if (order == MS_ORDER_INTERLEAVED && m % p != 0)
        return ms_fail(fault, MS_EUSAGE, "pipeline",
                       "let the micro-batches be a multiple of the ranks",
                       "an interleaved schedule of %u ranks does not divide %u "
                       "micro-batches into groups",
                       p, m);
    if (order == MS_ORDER_ZB_H1 && v > 1 && m % rounds != 0)
        return ms_fail(fault, MS_EUSAGE, "pipeline",
                       "let the micro-batches be a multiple of the ranks",
                       "%u micro-batches do not divide into %u rounds", m,
                       rounds);
    return MS_OK;
}

ms_err ms_orders_write(ms_order order, const ms_orders_size *size,
                       ms_schedule *schedule, ms_fault *fault)
{
    static void (*const writers[MS_N_ORDERS])(row *) = {
        [MS_ORDER_GPIPE] = write_gpipe,
        [MS_ORDER_1F1B] = write_1f1b,
        [MS_ORDER_INTERLEAVED] = write_interleaved,
        [MS_ORDER_LOOPED_BFS] = write_bfs,
        [MS_ORDER_ZB_H1] = write_zb_h1,
        [MS_ORDER_ZB_H2] = write_zb_h2,
        [MS_ORDER_ZB_V] = write_zb_v,
    };
    MS_TRY(check(order, size, fault));
    for (uint32_t r = 0; r < size->ranks; r++) {
        row w = {.size = size, .order = order, .rank = r, .schedule = schedule};
        schedule->turn_at[r + 1] = schedule->turn_at[r];
        writers[order](&w);
    }
    return MS_OK;
}
