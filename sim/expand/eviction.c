/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Room for what an op makes, where an online pass keeps to a budget. */
#include "sim/base/size.h"
#include "sim/expand/books.h"
#include "sim/graph.h"
#include "sim/online.h"
#include "sim/plan.h"
#include "sim/program.h"

#include <stdio.h>

/* A storage that came, if it is what the storage still came as. */
typedef struct arrival {
    uint32_t storage, came;
} arrival;

struct ms_evictions {
    const ms_online *online;
    void *state;
    /* What of the plan is counted so far, and what it comes to. */
    uint32_t n_ops, n_rows, n_release;
    uint64_t level_bytes, now_ns, again_ns;
    uint32_t reached;
    uint64_t *used_ns; /* per storage: */
    uint32_t *pins;    /* ops that will read it before anything is left of it */
    uint32_t *came, n_came;
    uint8_t *noted; /* it is in changed */
    uint32_t *changed, n_changed;
    arrival *arrivals; /* room for twice as many as there are storages */
    uint32_t n_arrivals;
    uint32_t *here;
};

static bool take_columns(struct ms_evictions *e, size_t n, ms_arena *arena)
{
    e->state = ms_arena_take(arena, e->online->state_bytes + 1, 1);
    e->used_ns = ms_arena_take(arena, n, sizeof *e->used_ns);
    e->pins = ms_arena_take(arena, n, sizeof *e->pins);
    e->came = ms_arena_take(arena, n, sizeof *e->came);
    e->noted = ms_arena_take(arena, n, 1);
    e->changed = ms_arena_take_raw(arena, n, sizeof *e->changed);
    e->arrivals = ms_arena_take_raw(arena, 2 * n, sizeof *e->arrivals);
    e->here = ms_arena_take_raw(arena, n, sizeof *e->here);
    return e->state && e->used_ns && e->pins && e->came && e->noted &&
           e->changed && e->arrivals && e->here;
}

static void note(const ms_books *books, uint32_t storage)
{
    struct ms_evictions *e = books->evictions;
    if (storage == MS_NONE || storage < books->graph->n_persistent ||
        e->noted[storage])
        return;
    e->noted[storage] = 1;
    e->changed[e->n_changed++] = storage;
}

static void note_all(const ms_books *books)
{
    const ms_graph *graph = books->graph;
    for (uint32_t s = graph->n_persistent; s < graph->n_storages; s++)
        note(books, s);
}

ms_err ms_eviction_open(ms_books *books, const ms_program *program)
{
    if (!program->online)
        return MS_OK;
    struct ms_evictions *e = ms_arena_take(books->arena, 1, sizeof *e);
    if (!e)
        return ms_fail_nomem(books->fault);
    e->online = program->online;
    if (!take_columns(e, books->graph->n_storages, books->arena))
        return ms_fail_nomem(books->fault);
    books->evictions = e;
    note_all(books);
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
    for (; e->n_rows < plan->n_rows; e->n_rows++) {
        e->level_bytes += device_bytes(plan, e->n_rows);
        note(books, plan->row[e->n_rows].storage);
    }
    for (; e->n_release < books->n_release; e->n_release++) {
        uint32_t row = plan->release[e->n_release];
        e->level_bytes -= device_bytes(plan, row);
        note(books, plan->row[row].storage);
    }
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

/* What is in use is pinned. */
bool ms_eviction_may_go(const ms_online_view *view, uint32_t storage)
{
    const ms_books *books = view->books;
    const ms_graph *graph = books->graph;
    uint32_t c = ms_books_cell(books, view->at, storage);
    uint32_t maker = graph->storage_maker[storage];
    return books->evictions->came[storage] != 0 &&
           is_saved(books, view->at, storage) &&
           books->evictions->pins[storage] == 0 && maker != MS_NONE &&
           graph->op_pass[maker] <= MS_LOSS &&
           !(books->state[c] & MS_REF_HOLDS) && !ms_books_away(books, c);
}

/* Leaves out what has gone since, or came again later. */
static void keep_arrivals(struct ms_evictions *e)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->n_arrivals; i++)
        if (e->came[e->arrivals[i].storage] == e->arrivals[i].came)
            e->arrivals[n++] = e->arrivals[i];
    e->n_arrivals = n;
}

uint32_t ms_eviction_list(const ms_online_view *view, const uint32_t **here)
{
    struct ms_evictions *e = view->books->evictions;
    uint32_t n = 0;
    keep_arrivals(e);
    for (uint32_t i = 0; i < e->n_arrivals; i++)
        if (ms_eviction_may_go(view, e->arrivals[i].storage))
            e->here[n++] = e->arrivals[i].storage;
    *here = e->here;
    return n;
}

/* It is saved from now on; what never left keeps its place. */
static void arrive(const ms_books *books, uint32_t storage)
{
    struct ms_evictions *e = books->evictions;
    if (e->came[storage] != 0)
        return;
    if (e->n_arrivals == 2 * books->graph->n_storages)
        keep_arrivals(e);
    e->came[storage] = ++e->n_came;
    e->arrivals[e->n_arrivals++] = (arrival){storage, e->n_came};
}

/* What has gone, and did not come back before a victim was asked for. */
static void note_gone(const ms_books *books, const ms_books_at *at)
{
    struct ms_evictions *e = books->evictions;
    for (uint32_t i = 0; i < e->n_changed; i++)
        if (!is_saved(books, at, e->changed[i]))
            e->came[e->changed[i]] = 0;
}

static void forget_changes(struct ms_evictions *e)
{
    for (uint32_t i = 0; i < e->n_changed; i++)
        e->noted[e->changed[i]] = 0;
    e->n_changed = 0;
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

/* MS_NONE: none may go. */
static uint32_t ask(const ms_books *books, const ms_books_at *at,
                    uint64_t missing_bytes)
{
    struct ms_evictions *e = books->evictions;
    note_gone(books, at);
    const ms_online_view view = {.graph = books->graph,
                                 .now_ns = e->now_ns,
                                 .level_bytes = e->level_bytes,
                                 .missing_bytes = missing_bytes,
                                 .row = books->row + at->frame,
                                 .used_ns = e->used_ns,
                                 .came = e->came,
                                 .reached = e->reached,
                                 .changed = e->changed,
                                 .n_changed = e->n_changed,
                                 .books = books,
                                 .at = at};
    uint32_t victim = e->online->victim(e->online, e->state, &view);
    forget_changes(e);
    return victim;
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
        uint64_t need_bytes = e->level_bytes + bytes;
        uint32_t victim = ask(books, at, need_bytes - online->budget_bytes);
        if (victim == MS_NONE)
            return no_room(books, op, need_bytes);
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

/* Forward has come to here: what it made before may be gone from now on. */
static void reach(const ms_books *books, uint32_t reached)
{
    const ms_graph *graph = books->graph;
    struct ms_evictions *e = books->evictions;
    uint32_t end = graph->out_at[reached];
    if (reached < e->reached)
        note_all(books); /* another micro-batch */
    else
        for (uint32_t i = graph->out_at[e->reached]; i < end; i++)
            note(books, graph->out[i]);
    e->reached = reached;
}

void ms_eviction_ran(ms_books *books, const ms_books_at *at, uint32_t op)
{
    const ms_graph *graph = books->graph;
    struct ms_evictions *e = books->evictions;
    if (!e)
        return;
    for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++) {
        e->used_ns[graph->in[i]] = e->now_ns; /* as it began */
        note(books, graph->in[i]);
    }
    count(books, e);
    for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++) {
        uint32_t s = graph->out[i];
        e->used_ns[s] = e->now_ns;
        note(books, s);
        if (s >= graph->n_persistent && is_saved(books, at, s))
            arrive(books, s);
    }
    if (books->plan->op[books->plan->n_ops - 1].pass <= MS_LOSS)
        reach(books, op + 1);
}
