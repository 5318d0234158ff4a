/* SPDX-License-Identifier: GPL-3.0-or-later */
/* bind: whatever an op needs that is not present is made present. */
#include "sim/books.h"

#include <assert.h>
#include <stdlib.h>

/* Starts a rerun with stamps of its own. */
static ms_err next_tick(ms_books *books)
{
    const ms_graph *graph = books->graph;
    size_t size = sizeof(uint32_t);

    if (!books->stamp)
        books->stamp = ms_arena_take(books->arena, graph->n_storages, size);
    if (!books->op_stamp)
        books->op_stamp = ms_arena_take(books->arena, graph->n_ops, size);
    if (!books->stamp || !books->op_stamp)
        return ms_fail_nomem(books->fault);
    books->tick = ++books->last_tick;
    return MS_OK;
}

static bool in_host_memory(const ms_books *books, uint32_t cell)
{
    return books->host_row && books->host_row[cell] != MS_NONE;
}

static bool is_shard(const ms_books *books, uint32_t cell)
{
    return books->shard_row && books->shard_row[cell] != MS_NONE;
}

static ms_err ask(ms_books *books, uint32_t storage)
{
    uint32_t *asked =
        ms_arena_grow(books->arena, books->asked, &books->asked_capacity,
                      books->n_asked + 1, sizeof *asked);

    if (!asked)
        return ms_fail_nomem(books->fault);
    books->asked = asked;
    asked[books->n_asked++] = storage;
    return MS_OK;
}

static ms_err gather_asked(ms_books *books, const ms_books_at *at,
                           uint32_t storage)
{
    MS_TRY(ask(books, storage));
    return ms_bind_gather(books, at, &storage, 1);
}

/* ---- running forward ops again ------------------------------------------- */

/* Makes op's outputs again.  saved_from: a storage whose SAVED reference ends
 * at this op or later is saved again. */
static void remake_outputs(ms_books *books, const ms_books_at *at, uint32_t op,
                           uint32_t saved_from)
{
    const ms_graph *graph = books->graph;

    for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++) {
        uint32_t s = graph->out[i], c = ms_books_cell(books, at, s);
        uint32_t end = graph->storage_saved_end[s];
        bool saved = end != MS_NONE && end >= saved_from;
        uint8_t category = graph->storage_category[s];
        if (category == MS_ACTIVATIONS && !saved)
            category = MS_TEMPORARIES;
        if (books->row[c] != MS_NONE || in_host_memory(books, c)) {
            /* Still there from the first run: the kernel writes a copy that
             * nobody keeps. */
            ms_books_give(books, ms_books_take(books, s, MS_TEMPORARIES,
                                               MS_DEVICE_POOL, false));
            continue;
        }
        uint32_t r = ms_books_take(books, s, category, MS_DEVICE_POOL, saved);
        uint8_t refs = graph->storage_refs[s] & (uint8_t)~MS_REF_SAVED;
        if (saved)
            refs |= MS_REF_SAVED;
        books->stamp[s] = books->tick;
        ms_books_hold(books, c, r, refs);
    }
}

/* Ends the local references that end at op, of what this rerun made. */
static void end_locals(ms_books *books, const ms_books_at *at, uint32_t op)
{
    const ms_graph *graph = books->graph;

    for (uint32_t i = graph->drop_at[op]; i < graph->drop_at[op + 1]; i++) {
        uint32_t s = MS_DROP_STORAGE(graph->drop[i]);
        if (!(graph->drop[i] & MS_DROP_SAVED) && books->stamp[s] == books->tick)
            ms_books_end(books, ms_books_cell(books, at, s), MS_REF_LOCAL);
    }
}

static void read_inputs(ms_books *books, const ms_books_at *at, uint32_t op)
{
    const ms_graph *graph = books->graph;

    if (!books->reads)
        return;
    for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++)
        ms_books_read(books,
                      books->row[ms_books_cell(books, at, graph->in[i])]);
}

static ms_err rerun_op(ms_books *books, const ms_books_at *at, uint32_t op,
                       uint32_t saved_from)
{
    const ms_graph *graph = books->graph;
    uint32_t outs = graph->out_at[op + 1] - graph->out_at[op];
    uint32_t reads = graph->in_at[op + 1] - graph->in_at[op];

    MS_TRY(ms_books_reserve(books, 1, outs, reads));
    ms_books_issue(books, at, op, MS_RECOMPUTE, graph->op_stream[op],
                   graph->op_ns[op]);
    books->plan->recomputed_ops++;
    read_inputs(books, at, op);
    remake_outputs(books, at, op, saved_from);
    end_locals(books, at, op);
    return MS_OK;
}

/* Ends the local references left on the outputs of op. */
static void end_outputs(ms_books *books, const ms_books_at *at, uint32_t op,
                        bool only_remade)
{
    const ms_graph *graph = books->graph;

    for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++) {
        uint32_t s = graph->out[i];
        if (!only_remade || books->stamp[s] == books->tick)
            ms_books_end(books, ms_books_cell(books, at, s), MS_REF_LOCAL);
    }
}

/* ---- one storage --------------------------------------------------------- */

static ms_err cannot_make(ms_books *books, uint32_t storage, uint32_t reader)
{
    const ms_graph *graph = books->graph;
    char name[MS_STORAGE_NAME];

    return ms_fail(books->fault, MS_EINPUT, graph->name,
                   "run the unit that makes it first, or keep it",
                   "%s (op %u) reads %s, which does not exist at this point "
                   "of the program and cannot be made again",
                   graph->op_name[reader], reader,
                   ms_graph_storage_name(graph, storage, name));
}

static ms_err push_work(ms_books *books, uint32_t *n, uint32_t op)
{
    uint32_t *work = ms_arena_grow(books->arena, books->work,
                                   &books->work_capacity, *n + 1, sizeof *work);

    if (!work)
        return ms_fail_nomem(books->fault);
    books->work = work;
    work[(*n)++] = op;
    books->op_stamp[op] = books->tick;
    return MS_OK;
}

/* Asks for the maker of storage to run again, unless it was asked already. */
static ms_err want_maker(ms_books *books, const ms_books_at *at,
                         uint32_t storage, uint32_t reader, uint32_t *n)
{
    const ms_graph *graph = books->graph;
    uint32_t maker = graph->storage_maker[storage];
    uint32_t c = ms_books_cell(books, at, storage);

    if (maker == MS_NONE || !(books->state[c] & MS_REF_MADE) ||
        graph->op_pass[maker] > MS_LOSS)
        return cannot_make(books, storage, reader);
    if (books->op_stamp[maker] == books->tick)
        return MS_OK;
    return push_work(books, n, maker);
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Collects the makers of what is missing, transitively.  Forward ops read
 * only earlier ops' storages, so this ends. */
static ms_err collect(ms_books *books, const ms_books_at *at, uint32_t *n)
{
    const ms_graph *graph = books->graph;

    for (uint32_t i = 0; i < *n; i++) {
        uint32_t op = books->work[i];
        for (uint32_t k = graph->in_at[op]; k < graph->in_at[op + 1]; k++) {
            uint32_t s = graph->in[k], c = ms_books_cell(books, at, s);
            if (books->row[c] != MS_NONE)
                continue;
            if (in_host_memory(books, c))
                MS_TRY(ms_bind_move(books, at, s, MS_HERE, 0));
            else if (is_shard(books, c))
                MS_TRY(gather_asked(books, at, s));
            else
                MS_TRY(want_maker(books, at, s, op, n));
        }
    }
    return MS_OK;
}

ms_err ms_bind_storage(ms_books *books, const ms_books_at *at, uint32_t storage,
                       uint32_t reader)
{
    uint32_t n = 0, cell = ms_books_cell(books, at, storage);

    if (in_host_memory(books, cell))
        return ms_bind_move(books, at, storage, MS_HERE, 0);
    if (is_shard(books, cell))
        return gather_asked(books, at, storage);
    MS_TRY(next_tick(books));
    MS_TRY(want_maker(books, at, storage, reader, &n));
    MS_TRY(collect(books, at, &n));
    qsort(books->work, n, sizeof *books->work, by_number);
    for (uint32_t i = 0; i < n; i++)
        MS_TRY(rerun_op(books, at, books->work[i], reader));
    for (uint32_t i = 0; i < n; i++)
        end_outputs(books, at, books->work[i], true);
    if (books->row[cell] == MS_NONE)
        return cannot_make(books, storage, reader);
    return MS_OK;
}

/* ---- whole units (activation checkpointing) ------------------------------ */

/* Stamps the ops of [first, end) whose results the backward of these units
 * needs, and the ops these need.  saved_from: first backward op of the last
 * unit.  This is the early stop of torch's non-reentrant checkpoint
 * (_StopRecomputationError), to the op. */
static void stamp_needed(ms_books *books, const ms_books_at *at, uint32_t first,
                         uint32_t end, uint32_t saved_from)
{
    const ms_graph *graph = books->graph;

    for (uint32_t op = end; op-- > first;) {
        bool needed = false;
        for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++) {
            uint32_t s = graph->out[i];
            uint32_t saved_end = graph->storage_saved_end[s];
            bool wanted = (saved_end != MS_NONE && saved_end >= saved_from) ||
                          books->stamp[s] == books->tick;
            needed |=
                wanted && books->row[ms_books_cell(books, at, s)] == MS_NONE;
        }
        if (!needed)
            continue;
        books->op_stamp[op] = books->tick;
        for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++)
            books->stamp[graph->in[i]] = books->tick;
    }
}

static ms_err bind_inputs(ms_books *books, const ms_books_at *at, uint32_t op)
{
    const ms_graph *graph = books->graph;

    for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++) {
        uint32_t s = graph->in[i], tick = books->tick;
        if (books->row[ms_books_cell(books, at, s)] != MS_NONE)
            continue;
        MS_TRY(ms_bind_storage(books, at, s, op));
        books->tick = tick;
    }
    return MS_OK;
}

static ms_err open_rerun(ms_books *books, const ms_books_at *at, uint32_t unit)
{
    return ms_bind_open_unit(books, at, books->graph->forward_at[unit],
                             books->graph->forward_at[unit + 1]);
}

/* The random state is a tensor of its own; no kernel makes it. */
static ms_err make_state(ms_books *books, const ms_books_at *at, uint32_t state,
                         uint32_t *row)
{
    MS_TRY(ms_books_reserve(books, 1, 1, 0));
    ms_books_issue(books, at, MS_NONE, MS_COPY, MS_STREAM_COMPUTE, 0);
    *row = ms_books_take(books, state, MS_ACTIVATIONS, MS_DEVICE_POOL, false);
    return MS_OK;
}

ms_err ms_bind_state(ms_books *books, const ms_books_at *at,
                     const ms_call *call)
{
    const uint32_t *states = books->graph->unit_state;

    if (!states)
        return MS_OK;
    uint32_t c = ms_books_cell(books, at, states[call->unit]);
    if (books->row[c] != MS_NONE)
        ms_books_give(books, books->row[c]);
    books->row[c] = MS_NONE;
    if (call->place == MS_GONE)
        return MS_OK;
    return make_state(books, at, states[call->unit], &books->row[c]);
}

ms_err ms_bind_units(ms_books *books, const ms_books_at *at,
                     const ms_call *call)
{
    const ms_graph *graph = books->graph;
    uint32_t first = graph->forward_at[call->unit];
    uint32_t end = graph->forward_at[call->last + 1];
    uint32_t saved_from = graph->backward_at[call->last + 1];
    bool whole = call->flags & MS_CALL_WHOLE;

    uint32_t state = MS_NONE;
    if (call->flags & MS_CALL_STATE && graph->unit_state)
        MS_TRY(make_state(books, at, graph->unit_state[call->unit], &state));
    MS_TRY(next_tick(books));
    uint32_t wanted = books->tick;
    if (!whole)
        stamp_needed(books, at, first, end, saved_from);
    MS_TRY(next_tick(books));
    for (uint32_t u = call->unit, op = first; u <= call->last; u++) {
        MS_TRY(open_rerun(books, at, u));
        for (; op < graph->forward_at[u + 1]; op++) {
            if (!whole && books->op_stamp[op] != wanted) {
                end_locals(books, at, op);
                continue;
            }
            MS_TRY(bind_inputs(books, at, op));
            MS_TRY(rerun_op(books, at, op, saved_from));
        }
        ms_bind_close_unit(books, at);
    }
    if (state != MS_NONE)
        ms_books_give(books, state);
    if (!(call->flags & MS_CALL_HOLD_OUTPUTS))
        for (uint32_t op = first; op < end; op++)
            end_outputs(books, at, op, true);
    return MS_OK;
}

/* ---- moves --------------------------------------------------------------- */

static uint64_t copy_ns(const ms_expand_opts *opts, uint64_t bytes, double rate)
{
    double ns = rate > 0 ? (double)bytes / rate * 1e9 : 0;

    return opts->copy_ns + (uint64_t)(ns + 0.5);
}

/* The gathered copy goes, this rank's part stays. */
static void let_go(ms_books *books, uint32_t cell)
{
    if (!is_shard(books, cell) || books->row[cell] == MS_NONE)
        return;
    ms_books_give(books, books->row[cell]);
    books->row[cell] = MS_NONE;
}

/* What is copied from the host or gathered takes memory that ops of the compute
 * stream may still use when the host hands it out: it starts after them. */
static void wait_for_compute(ms_books *books, const ms_books_at *at)
{
    uint32_t last = books->last_compute[at->rank];

    if (last != MS_NONE)
        books->plan->wait[books->n_wait++] = last;
}

static ms_err issue_copy(ms_books *books, const ms_books_at *at, bool in,
                         bool in_line, uint64_t bytes)
{
    const ms_expand_opts *opts = books->opts;
    double rate = in ? opts->h2d_bytes_per_s : opts->d2h_bytes_per_s;
    uint8_t stream = in ? MS_STREAM_H2D : MS_STREAM_D2H;

    MS_TRY(ms_books_reserve(books, 1, 1, 2));
    ms_books_issue(books, at, MS_NONE, MS_COPY,
                   in_line ? MS_STREAM_COMPUTE : stream,
                   copy_ns(opts, bytes, rate));
    if (in && !in_line)
        wait_for_compute(books, at);
    return MS_OK;
}

ms_err ms_bind_move(ms_books *books, const ms_books_at *at, uint32_t storage,
                    uint8_t place, uint8_t flags)
{
    bool in = place == MS_HERE, later = flags & MS_CALL_LATER && !in;
    uint32_t c = ms_books_cell(books, at, storage);
    uint32_t *from = in ? books->host_row : books->row;
    uint32_t *to = in ? books->row : books->host_row;

    if (place == MS_SHARD) {
        let_go(books, c);
        return MS_OK;
    }
    if (from[c] == MS_NONE || to[c] != MS_NONE)
        return MS_OK; /* there, or on its way; or gone: bind will make it */
    MS_TRY(issue_copy(books, at, in, flags & MS_CALL_IN_LINE,
                      books->graph->storage_bytes[storage]));
    ms_books_read(books, from[c]);
    to[c] = ms_books_take(books, storage, books->plan->row[from[c]].category,
                          in ? MS_DEVICE_POOL : MS_HOST_POOL,
                          books->plan->row[from[c]].saved);
    if (later)
        return MS_OK;
    ms_books_give(books, from[c]);
    from[c] = MS_NONE;
    return MS_OK;
}

ms_err ms_bind_wait(ms_books *books, const ms_books_at *at,
                    const uint32_t *storages, uint32_t n)
{
    if (!books->host_row)
        return MS_OK;
    MS_TRY(ms_books_reserve(books, 1, 0, 2 * n));
    ms_books_issue(books, at, MS_NONE, MS_COPY, MS_STREAM_COMPUTE, 0);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = ms_books_cell(books, at, storages[i]);
        bool goes = books->host_row[c] != MS_NONE;
        if (books->row[c] != MS_NONE)
            ms_books_read(books, books->row[c]);
        if (!goes)
            continue;
        ms_books_read(books, books->host_row[c]);
        if (books->row[c] != MS_NONE)
            ms_books_give(books, books->row[c]);
        books->row[c] = MS_NONE;
    }
    return MS_OK;
}

/* ---- collectives --------------------------------------------------------- */

/* One op on the communication stream over so many bytes, and room for what it
 * makes and reads. */
static ms_err issue_collective(ms_books *books, const ms_books_at *at,
                               ms_collective kind, uint64_t bytes, uint32_t n)
{
    const ms_ring *ring = &books->opts->ring;
    ms_plan *plan = books->plan;
    struct ms_transfer *transfers =
        ms_arena_grow(books->arena, plan->transfers, &books->transfers_capacity,
                      plan->n_transfers + 1, sizeof *transfers);

    if (!transfers)
        return ms_fail_nomem(books->fault);
    plan->transfers = transfers;
    transfers[plan->n_transfers++] = (struct ms_transfer){
        plan->n_ops, ms_collective_sent_bytes(ring, kind, bytes)};
    MS_TRY(ms_books_reserve(books, 1, n, 2 * n + 1));
    ms_books_issue(books, at, MS_NONE, MS_COPY, MS_STREAM_COMM,
                   ms_collective_ns(ring, kind, bytes));
    return MS_OK;
}

/* What the collective wrote where it was is ready when the collective ends. */
static void read_and_write(ms_books *books, uint32_t row)
{
    ms_books_read(books, row);
    books->ready_op[row] = books->plan->n_ops - 1;
}

ms_err ms_bind_gather(ms_books *books, const ms_books_at *at,
                      const uint32_t *storages, uint32_t n)
{
    uint64_t bytes = 0;
    uint32_t missing = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = ms_books_cell(books, at, storages[i]);
        if (is_shard(books, c) && books->row[c] != MS_NONE)
            continue;
        bytes += books->graph->storage_bytes[storages[i]];
        missing++;
    }
    if (missing == 0)
        return MS_OK;
    MS_TRY(issue_collective(books, at, MS_ALL_GATHER, bytes, n));
    if (books->shard_row)
        wait_for_compute(books, at);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t s = storages[i], c = ms_books_cell(books, at, s);
        if (!is_shard(books, c) && books->row[c] != MS_NONE)
            read_and_write(books, books->row[c]);
        if (!is_shard(books, c) || books->row[c] != MS_NONE)
            continue;
        ms_books_read(books, books->shard_row[c]);
        books->row[c] =
            ms_books_take(books, s, MS_COMMUNICATION, MS_DEVICE_POOL, false);
    }
    return MS_OK;
}

/* The sum of what every rank has goes to the owners of its parts; the whole
 * is dropped. */
static void scatter(ms_books *books, uint32_t storage, uint32_t cell)
{
    ms_books_read(books, books->row[cell]);
    if (books->shard_row[cell] == MS_NONE)
        books->shard_row[cell] =
            ms_books_take_shard(books, storage, MS_GRADIENTS);
    else
        read_and_write(books, books->shard_row[cell]);
    ms_books_give(books, books->row[cell]);
    books->row[cell] = MS_NONE;
}

ms_err ms_bind_open_unit(ms_books *books, const ms_books_at *at, uint32_t first,
                         uint32_t end)
{
    const ms_graph *graph = books->graph;
    uint32_t n = books->n_asked;

    if (!books->shard_row)
        return MS_OK;
    for (uint32_t i = graph->in_at[first]; i < graph->in_at[end]; i++) {
        uint32_t s = graph->in[i], c = ms_books_cell(books, at, s);
        if (!is_shard(books, c) || books->row[c] != MS_NONE ||
            graph->storage_category[s] == MS_GRADIENTS)
            continue;
        MS_TRY(ask(books, s));
    }
    return ms_bind_gather(books, at, books->asked + n, books->n_asked - n);
}

void ms_bind_close_unit(ms_books *books, const ms_books_at *at)
{
    for (uint32_t i = 0; i < books->n_asked; i++)
        let_go(books, ms_books_cell(books, at, books->asked[i]));
    books->n_asked = 0;
}

ms_err ms_bind_reduce(ms_books *books, const ms_books_at *at,
                      const uint32_t *storages, uint32_t n, uint8_t place)
{
    ms_collective kind = place == MS_SHARD ? MS_REDUCE_SCATTER : MS_ALL_REDUCE;
    uint64_t bytes = 0;
    uint32_t made = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (books->row[ms_books_cell(books, at, storages[i])] == MS_NONE)
            continue;
        bytes += books->graph->storage_bytes[storages[i]];
        made++;
    }
    if (made == 0)
        return MS_OK;
    MS_TRY(issue_collective(books, at, kind, bytes, n));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = ms_books_cell(books, at, storages[i]);
        if (books->row[c] == MS_NONE)
            continue;
        if (place == MS_SHARD && ms_books_shared(books, storages[i]))
            scatter(books, storages[i], c);
        else
            read_and_write(books, books->row[c]);
    }
    return MS_OK;
}
