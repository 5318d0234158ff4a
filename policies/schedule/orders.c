/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/schedule/orders.h"
#include "policies/schedule/dualpipe.h"
#include "policies/schedule/greedy.h"
#include "policies/schedule/orderrow.h"
#include "policies/schedule/squeezed.h"

typedef ms_orderrow row;

/* ---- where stages are ---------------------------------------------------- */

uint32_t ms_orders_chunks(ms_order order, uint32_t given)
{
    if (given > 0)
        return given;
    return ms_orderrow_is_v(order) ? 2 : 1;
}

bool ms_orders_splits(ms_order order)
{
    return order >= MS_ORDER_ZB_H1;
}

bool ms_orders_plans(ms_order order)
{
    return order == MS_ORDER_ZB_1P || order == MS_ORDER_ZB_2P;
}

uint16_t ms_orders_rank(ms_order order, const ms_orders_size *size, uint32_t s)
{
    uint32_t p = size->ranks;
    if (ms_orderrow_is_v(order) && s >= p)
        return (uint16_t)(2 * p - 1 - s);
    return (uint16_t)(s % p);
}

/* DualPipe: the second half of the micro-batches goes the other way, through
 * copies of the stages. */
static ms_err place_copies(ms_order order, const ms_orders_size *size,
                           ms_arena *arena, ms_schedule *schedule,
                           ms_fault *fault)
{
    uint32_t p = size->ranks, m = size->micro_batches;
    if (order != MS_ORDER_DUALPIPE)
        return MS_OK;
    uint16_t *rank_of = ms_arena_take_raw(arena, (size_t)p * m, 2);
    if (rank_of == NULL)
        return ms_fail_nomem(fault);
    for (size_t at = 0; at < (size_t)p * m; at++) {
        uint32_t stage = (uint32_t)(at / m);
        rank_of[at] = (uint16_t)(at % m < m / 2 ? stage : p - 1 - stage);
    }
    schedule->rank_of = rank_of;
    return MS_OK;
}

static void put(row *w, ms_turn_kind kind, uint32_t chunk, uint32_t micro_batch)
{
    ms_orderrow_put(w, kind, chunk, micro_batch);
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
    bool joins;     /* ms_turn.joins, of those behind them */
} loop;

/* Turn k of a direction: the last group may be shorter. */
static void put_kth(row *w, const loop *it, ms_turn_kind kind, uint32_t k)
{
    uint32_t v = w->size->chunks, round = it->group * v;
    uint32_t first = k / round * it->group;
    uint32_t group = least(it->group, w->size->micro_batches - first);
    uint32_t chunk = k % round / group;
    put(w, kind, kind == MS_TURN_FORWARD ? chunk : v - 1 - chunk,
        first + k % round % group);
}

static void put_forward(row *w, const loop *it, uint32_t k)
{
    put_kth(w, it, MS_TURN_FORWARD, k);
}

static void write_loop(row *w, const loop *it)
{
    uint32_t f = 0;
    while (f < it->warm)
        put_forward(w, it, f++);
    for (uint32_t b = 0; b < it->total; b++) {
        if (f < it->total) {
            put_forward(w, it, f++);
            w->schedule->turns[w->schedule->turn_at[w->rank + 1] - 1].joins =
                it->joins;
        }
        put_kth(w, it, MS_TURN_BACKWARD, b);
    }
}

static void write_1f1b(row *w)
{
    uint32_t n = w->size->micro_batches;
    loop it = {
        .group = n, .total = n, .warm = least(n, w->size->ranks - 1 - w->rank)};
    write_loop(w, &it);
}

static uint32_t group_of(const ms_orders_size *size)
{
    return size->group > 0 ? size->group : size->ranks;
}

static void write_interleaved(row *w)
{
    uint32_t p = w->size->ranks, v = w->size->chunks;
    loop it = {.group = group_of(w->size),
               .total = v * w->size->micro_batches,
               .joins = true};
    it.warm =
        least(it.total, (uint64_t)(v - 1) * it.group + 2 * (p - 1 - w->rank));
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
        put_kth(w, &it, MS_TURN_GRAD_INPUT, b);
        if (b >= w->rank)
            put_kth(w, &it, MS_TURN_GRAD_WEIGHT, weights++);
    }
    while (weights < it.total)
        put_kth(w, &it, MS_TURN_GRAD_WEIGHT, weights++);
}

/* ---- a V ----------------------------------------------------------------- */

static void next(row *w, ms_turn_kind kind, uint32_t chunk)
{
    ms_orderrow_next(w, kind, chunk);
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

static ms_err check_chunks(ms_order order, uint32_t chunks, ms_fault *fault)
{
    bool loops = order == MS_ORDER_INTERLEAVED ||
                 order == MS_ORDER_LOOPED_BFS || order == MS_ORDER_ZB_H1;
    bool two = ms_orderrow_is_v(order);
    if (two ? chunks == 2 : chunks == 1 || loops)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, "pipeline",
                   two ? "leave chunks out"
                       : "take schedule=interleaved, or leave chunks out",
                   "this schedule has %s",
                   two ? "two chunks per rank" : "one chunk per rank");
}

/* Megatron-LM, core/pipeline_parallel/schedules.py (get_schedule_table): what
 * is left over must be a group that fills the pipeline, too. */
static ms_err check_group(const ms_orders_size *size, ms_fault *fault)
{
    uint32_t p = size->ranks, m = size->micro_batches;
    uint32_t group = group_of(size), left = m % group;
    if (size->group == 0 && left != 0)
        return ms_fail(fault, MS_EUSAGE, "pipeline",
                       "let the micro-batches be a multiple of the ranks, or "
                       "give group=",
                       "an interleaved schedule of %u ranks does not divide %u "
                       "micro-batches into groups",
                       p, m);
    if (group >= p && group <= m && (left == 0 || left >= p))
        return MS_OK;
    if (group < p || group > m)
        return ms_fail(fault, MS_EUSAGE, "pipeline:group",
                       "take from the ranks to the micro-batches",
                       "a group of %u micro-batches on %u ranks, of %u in all",
                       group, p, m);
    return ms_fail(fault, MS_EUSAGE, "pipeline:group",
                   "let the last group have none, or as many as there are "
                   "ranks",
                   "groups of %u leave %u of %u micro-batches, fewer than %u "
                   "ranks",
                   group, left, m, p);
}

static ms_err check(ms_order order, const ms_orders_size *size, ms_fault *fault)
{
    uint32_t p = size->ranks, m = size->micro_batches, v = size->chunks;
    uint32_t rounds = m / p > 0 ? m / p : 1;
    MS_TRY(check_chunks(order, v, fault));
    if (order == MS_ORDER_INTERLEAVED)
        MS_TRY(check_group(size, fault));
    if (order == MS_ORDER_DUALPIPE || order == MS_ORDER_DUALPIPEV)
        MS_TRY(ms_dualpipe_check(order, size, fault));
    if (order == MS_ORDER_ZB_H1 && v > 1 && m % rounds != 0)
        return ms_fail(fault, MS_EUSAGE, "pipeline",
                       "let the micro-batches be a multiple of the ranks",
                       "%u micro-batches do not divide into %u rounds", m,
                       rounds);
    return MS_OK;
}

/* NVIDIA/Megatron-LM d98e8a64, megatron/core/pipeline_parallel/schedules.py,
 * get_pp_rank_microbatches with overlap_moe_expert_parallel_comm: one forward
 * more is warm-up, so that no pair depends on itself. */
void ms_orders_pair(ms_schedule *schedule)
{
    for (uint32_t r = 0; r < schedule->n_ranks; r++) {
        bool first = true;
        for (uint32_t i = schedule->turn_at[r]; i < schedule->turn_at[r + 1];
             i++) {
            ms_turn *turn = &schedule->turns[i];
            if (!turn->joins)
                continue;
            turn->joins = false;
            if (!first) {
                ms_turn back = turn[-1];
                turn[-1] = *turn;
                turn[-1].pairs = true;
                *turn = back;
            }
            first = false;
        }
    }
}

ms_err ms_orders_plan(ms_order order, const ms_orders_size *size,
                      const ms_orders_costs *costs, ms_arena *arena,
                      ms_schedule *schedule, ms_fault *fault)
{
    MS_TRY(check(order, size, fault));
    return ms_greedy_write(order, size, costs, arena, schedule, fault);
}

ms_err ms_orders_write(ms_order order, const ms_orders_size *size,
                       ms_arena *arena, ms_schedule *schedule, ms_fault *fault)
{
    static void (*const writers[MS_N_ORDERS])(row *) = {
        [MS_ORDER_GPIPE] = write_gpipe,
        [MS_ORDER_1F1B] = write_1f1b,
        [MS_ORDER_INTERLEAVED] = write_interleaved,
        [MS_ORDER_LOOPED_BFS] = write_bfs,
        [MS_ORDER_ZB_H1] = write_zb_h1,
        [MS_ORDER_ZB_H2] = write_zb_h2,
        [MS_ORDER_ZB_V] = write_zb_v,
        [MS_ORDER_DUALPIPEV] = ms_dualpipe_write,
        [MS_ORDER_DUALPIPE] = ms_dualpipe_write,
    };
    const ms_orders_costs unknown = {0, NULL};
    MS_TRY(check(order, size, fault));
    MS_TRY(place_copies(order, size, arena, schedule, fault));
    if (ms_orders_plans(order))
        return ms_greedy_write(order, size, &unknown, arena, schedule, fault);
    if (writers[order] == NULL)
        return ms_squeezed_write(order, size, arena, schedule, fault);
    for (uint32_t r = 0; r < size->ranks; r++) {
        row w = {.size = size, .order = order, .rank = r, .schedule = schedule};
        schedule->turn_at[r + 1] = schedule->turn_at[r];
        writers[order](&w);
    }
    return MS_OK;
}
