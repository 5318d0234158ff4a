/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Room for what an op makes, where an online pass keeps to a budget. */
#include "sim/base/size.h"
#include "sim/expand/books.h"
#include "sim/graph.h"
#include "sim/online.h"
#include "sim/plan.h"
#include "sim/program.h"

#include <stdio.h>

struct ms_evictions {
    const ms_online *online;
    void *state;
    /* What of the plan is counted so far, and what it comes to. */
    uint32_t n_ops, n_rows, n_release;
    uint64_t level_bytes, now_ns, again_ns;
    uint32_t reached;
    uint64_t *used_ns; /* per storage: */
    uint32_t *pins;    /* ops that will read it before anything is left of it */
    uint8_t *listed;   /* it is in came */
    uint32_t *came, n_came;
    uint32_t *here; /* of came, what may go */
};

ms_err ms_eviction_open(ms_books *books, const ms_program *program)
{
    ms_arena *arena = books->arena;
    size_t n = books->graph->n_storages;
    if (!program->online)
        return MS_OK;
    struct ms_evictions *e = ms_arena_take(arena, 1, sizeof *e);
    if (!e)
        return ms_fail_nomem(books->fault);
    *e = (struct ms_evictions){
        .online = program->online,
        .state = ms_arena_take(arena, program->online->state_bytes + 1, 1),
        .used_ns = ms_arena_take(arena, n, sizeof *e->used_ns),
        .pins = ms_arena_take(arena, n, sizeof *e->pins),
        .listed = ms_arena_take(arena, n, 1),
        .came = ms_arena_take_raw(arena, n, sizeof *e->came),
        .here = ms_arena_take_raw(arena, n, sizeof *e->here)};
    if (!e->state || !e->used_ns || !e->pins || !e->listed || !e->came ||
        !e->here)
        return ms_fail_nomem(books->fault);
    books->evictions = e;
    return MS_OK;
}

/* ---- the level ----------------------------------------------------------- */

static uint64_t device_bytes(const ms_plan *plan, uint32_t row)
{
    const ms_row *it = &plan->row[row];
    return it->pool == MS_DEVICE_POOL ? it->bytes : 0;
}

/* Adds what was booked since. */
static void count(const ms_books *books, struct ms_evictions *e)
{
    const ms_plan *plan = books->plan;
    for (; e->n_ops < plan->n_ops; e->n_ops++) {
        const ms_plan_op *op = &plan->op[e->n_ops];
        e->now_ns += op->stream == MS_STREAM_COMPUTE ? op->ns : 0;
        e->again_ns += op->pass == MS_RECOMPUTE ? op->ns : 0;
    }
    for (; e->n_rows < plan->n_rows; e->n_rows++)
        e->level_bytes += device_bytes(plan, e->n_rows);
    for (; e->n_release < books->n_release; e->n_release++)
        e->level_bytes -= device_bytes(plan, plan->release[e->n_release]);
}

static uint64_t made_bytes(const ms_books *books, const ms_books_at *at,
                           uint32_t op)
{
    const ms_graph *graph = books->graph;
    uint64_t bytes = 0;
    for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++) {
        uint32_t s = graph->out[i];
        bool lasts = s < graph->n_persistent &&
                     books->row[ms_books_cell(books, at, s)] != MS_NONE;
        if (!lasts && ms_books_pool(books, s) == MS_DEVICE_POOL)
            bytes += graph->storage_bytes[s];
    }
    return bytes;
}

/* ---- what goes ----------------------------------------------------------- */

static bool is_saved(const ms_books *books, const ms_books_at *at,
                     uint32_t storage)
{
    uint32_t c = ms_books_cell(books, at, storage);
    return books->row[c] != MS_NONE && (books->state[c] & MS_REF_SAVED);
}

/* Can it be made again, and does nothing else hold it?  What is in use is
 * pinned. */
static bool may_go(const ms_books *books, const ms_books_at *at,
                   uint32_t storage)
{
    const ms_graph *graph = books->graph;
    uint32_t c = ms_books_cell(books, at, storage);
    uint32_t maker = graph->storage_maker[storage];
    return books->evictions->pins[storage] == 0 && maker != MS_NONE &&
           graph->op_pass[maker] <= MS_LOSS &&
           !(books->state[c] & MS_REF_HOLDS) && !ms_books_away(books, c);
}

static uint32_t find_here(const ms_books *books, const ms_books_at *at)
{
    struct ms_evictions *e = books->evictions;
    uint32_t kept = 0, n = 0;
    for (uint32_t i = 0; i < e->n_came; i++) {
        uint32_t s = e->came[i];
        e->listed[s] = is_saved(books, at, s);
        if (!e->listed[s])
            continue;
        e->came[kept++] = s;
        if (may_go(books, at, s))
            e->here[n++] = s;
    }
    e->n_came = kept;
    return n;
}

static ms_err no_room(const ms_books *books, uint32_t op, uint64_t need_bytes)
{
    const ms_online *online = books->evictions->online;
    char hint[80], budget[MS_SIZE_COUNT], need[MS_SIZE_COUNT];
    ms_size_count(online->budget_bytes, budget);
    ms_size_count(need_bytes, need);
    snprintf(hint, sizeof hint, "try budget=%llu and more",
             (unsigned long long)need_bytes);
    return ms_fail(books->fault, MS_EINFEASIBLE, online->name, hint,
                   "%s (op %u) needs %s bytes with nothing left that may go, "
                   "and the budget is %s",
                   books->graph->op_name[op], op, need, budget);
}

static ms_err thrashes(const ms_books *books, uint32_t op)
{
    const ms_online *online = books->evictions->online;
    return ms_fail(books->fault, MS_EINFEASIBLE, online->name,
                   "give it a larger budget=, or another h=",
                   "it thrashes: at %s (op %u) more than %.3g ms have run "
                   "again",
                   books->graph->op_name[op], op,
                   (double)online->most_again_ns / 1e6);
}

/* What is left of it is what a checkpoint leaves: that it was made. */
static void evict(ms_books *books, const ms_books_at *at, uint32_t storage)
{
    uint32_t c = ms_books_cell(books, at, storage);
    books->state[c] &= (uint8_t)~MS_REF_ANY;
    ms_books_lose(books, c);
}

ms_err ms_eviction_room(ms_books *books, const ms_books_at *at, uint32_t op)
{
    struct ms_evictions *e = books->evictions;
    if (!e)
        return MS_OK;
    const ms_online *online = e->online;
    uint64_t bytes = made_bytes(books, at, op);
    count(books, e);
    if (e->again_ns > online->most_again_ns)
        return thrashes(books, op);
    while (bytes > 0 && e->level_bytes + bytes > online->budget_bytes) {
        const ms_online_view view = {.graph = books->graph,
                                     .now_ns = e->now_ns,
                                     .level_bytes = e->level_bytes,
                                     .missing_bytes = e->level_bytes + bytes -
                                                      online->budget_bytes,
                                     .here = e->here,
                                     .n_here = find_here(books, at),
                                     .row = books->row + at->frame,
                                     .used_ns = e->used_ns,
                                     .reached = e->reached};
        uint32_t victim = MS_NONE;
        if (view.n_here > 0)
            victim = online->victim(online, e->state, &view);
        if (victim == MS_NONE)
            return no_room(books, op, e->level_bytes + bytes);
        evict(books, at, victim);
        count(books, e);
    }
    return MS_OK;
}

/* ---- what is used -------------------------------------------------------- */

void ms_eviction_pin(ms_books *books, uint32_t op, bool pins)
{
    const ms_graph *graph = books->graph;
    struct ms_evictions *e = books->evictions;
    for (uint32_t i = graph->in_at[op]; e && i < graph->in_at[op + 1]; i++) {
        uint32_t *n = &e->pins[graph->in[i]];
        *n = pins ? *n + 1 : *n - 1;
    }
}

void ms_eviction_ran(ms_books *books, const ms_books_at *at, uint32_t op)
{
    const ms_graph *graph = books->graph;
    struct ms_evictions *e = books->evictions;
    if (!e)
        return;
    for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++)
        e->used_ns[graph->in[i]] = e->now_ns; /* as it began */
    count(books, e);
    for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++) {
        uint32_t s = graph->out[i];
        e->used_ns[s] = e->now_ns;
        if (s < graph->n_persistent || e->listed[s] || !is_saved(books, at, s))
            continue;
        e->listed[s] = 1;
        e->came[e->n_came++] = s;
    }
    bool forward = books->plan->op[books->plan->n_ops - 1].pass <= MS_LOSS;
    if (forward)
        e->reached = op + 1;
}
