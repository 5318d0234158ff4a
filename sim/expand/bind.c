/* SPDX-License-Identifier: GPL-3.0-or-later */
/* bind: makes present whatever an op needs and does not find. */
#include "sim/expand/bind.h"
#include "sim/expand/books.h"
#include "sim/expand/move.h"
#include "sim/expand/views/halves.h"
#include "sim/graph.h"
#include "sim/program.h"

#include <assert.h>
#include <stdlib.h>

/* Each rank has stamps of its own, because replays of several ranks that come
 * in parts may be open at the same time. */
static ms_err open_stamps(ms_books *books, const ms_books_at *at)
{
    const ms_graph *graph = books->graph;
    size_t both = (size_t)graph->n_storages + graph->n_ops;
    if (!books->stamps)
        books->stamps = ms_arena_take(books->arena, both * books->plan->n_ranks,
                                      sizeof *books->stamps);
    if (!books->replays)
        books->replays = ms_arena_take(books->arena, books->plan->n_ranks,
                                       sizeof *books->replays);
    if (!books->stamps || !books->replays)
        return ms_fail_nomem(books->fault);
    books->stamp = books->stamps + both * at->rank;
    books->op_stamp = books->stamp + graph->n_storages;
    return MS_OK;
}

/* Starts a rerun with ticks of its own. */
static ms_err next_tick(ms_books *books, const ms_books_at *at)
{
    MS_TRY(open_stamps(books, at));
    books->tick = ++books->last_tick;
    return MS_OK;
}

/* Brings a copy of what lies elsewhere; *found: there was one. */
static ms_err bring(ms_books *books, const ms_books_at *at, uint32_t storage,
                    bool *found)
{
    uint32_t cell = ms_books_cell(books, at, storage);
    *found = true;
    if (ms_books_in(books->packed, cell) != MS_NONE)
        return ms_pack_out(books, at, &storage, 1, false);
    if (ms_books_apart(books, storage, cell))
        return ms_gather_ask(books, at, storage);
    *found = ms_books_far(books, cell);
    return *found ? ms_move_storage(books, at, storage,
                                    (ms_move_call){.to = MS_HERE})
                  : MS_OK;
}

/* ---- running forward ops again ------------------------------------------- */

/* Is op `end` not over when `from` runs?  All of the second half comes behind
 * the first. */
static bool comes_behind(const ms_books *books, uint32_t end, uint32_t from)
{
    const uint8_t *second =
        books->in_half && from != MS_NONE ? books->halves->second : NULL;
    if (second != NULL && second[end] != second[from])
        return second[end];
    return end >= from;
}

/* Makes op's outputs again.  saved_from: a storage whose SAVED reference ends
 * at this op or later is saved again. */
static void remake_outputs(ms_books *books, const ms_books_at *at, uint32_t op,
                           uint32_t saved_from)
{
    const ms_graph *graph = books->graph;
    for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++) {
        uint32_t s = graph->out[i], c = ms_books_cell(books, at, s);
        uint32_t end = graph->storage_saved_end[s];
        bool saved = end != MS_NONE && comes_behind(books, end, saved_from);
        uint8_t category = graph->storage_category[s];
        if (s < graph->n_persistent && books->row[c] != MS_NONE)
            continue; /* made once */
        if (end != MS_NONE && !saved && i > graph->out_at[op] &&
            ms_books_spares(books, op))
            continue;
        if (category == MS_BECOMES_GRAD ||
            (category == MS_ACTIVATIONS && !saved))
            category = MS_TEMPORARIES;
        if (books->row[c] != MS_NONE || ms_books_away(books, c)) {
            /* The output is still there from the first run: the kernel runs
             * anyway and writes a copy that is dropped at once. */
            ms_books_give(books, ms_books_take(books, s, MS_TEMPORARIES,
                                               MS_DEVICE_POOL, false));
            continue;
        }
        uint32_t r = ms_books_take(books, s, category, MS_DEVICE_POOL, saved);
        uint8_t refs = graph->storage_refs[s] & (uint8_t)~MS_REF_SAVED;
        if (saved)
            refs |= MS_REF_SAVED;
        if (books->holds && books->held[s] == books->run) {
            refs += MS_REF_HOLD;
            books->held[s] = MS_NONE;
        }
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
    bool in_place = ms_gather_meets_in_place(books, op);
    if (!books->reads)
        return;
    for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++) {
        uint32_t row = books->row[ms_books_cell(books, at, graph->in[i])];
        if (in_place)
            ms_books_write(books, row);
        else
            ms_books_read(books, row);
    }
}

static ms_err rerun_op(ms_books *books, const ms_books_at *at, uint32_t op,
                       uint32_t saved_from)
{
    const ms_graph *graph = books->graph;
    uint32_t outs = graph->out_at[op + 1] - graph->out_at[op];
    uint32_t reads = graph->in_at[op + 1] - graph->in_at[op];
    if (books->evictions)
        MS_TRY(ms_eviction_room(books, at, op));
    MS_TRY(ms_books_reserve(books, 1, outs, reads));
    if (books->streams && ms_books_meets(books, op))
        MS_TRY(ms_gather_note_meeting(books, op));
    ms_books_issue(books, at, op, MS_RECOMPUTE, graph->op_stream[op],
                   graph->op_ns[op]);
    books->plan->recomputed_ops++;
    read_inputs(books, at, op);
    remake_outputs(books, at, op, saved_from);
    if (ms_books_meets(books, op))
        ms_gather_home(books);
    if (books->evictions)
        ms_eviction_ran(books, at, op);
    end_locals(books, at, op);
    return MS_OK;
}

/* What the ops of the list read stays until they have. */
static void pin_list(ms_books *books, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        ms_eviction_pin(books, books->work[i], true);
}

static ms_err rerun_pinned(ms_books *books, const ms_books_at *at, uint32_t op,
                           uint32_t saved_from)
{
    ms_err err = rerun_op(books, at, op, saved_from);
    ms_eviction_pin(books, op, false);
    return err;
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

/* reader: an op, or MS_NONE for a HOLD. */
static ms_err cannot_make(ms_books *books, uint32_t storage, uint32_t reader)
{
    const ms_graph *graph = books->graph;
    char name[MS_STORAGE_NAME];
    if (reader == MS_NONE)
        return ms_fail(books->fault, MS_EINPUT, graph->name,
                       "run the unit that makes it first",
                       "a hold asks again for %s, which does not exist at this "
                       "point of the program and cannot be made again",
                       ms_graph_storage_name(graph, storage, name));
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

/* The storage that a forward op writes in place, its first input; MS_NONE for
 * an op that makes its results. */
static uint32_t written(const ms_graph *graph, uint32_t op)
{
    uint32_t first = graph->in_at[op];
    bool in_place = graph->out_at[op] == graph->out_at[op + 1] &&
                    first < graph->in_at[op + 1] &&
                    graph->in[first] >= graph->n_persistent;
    return in_place ? graph->in[first] : MS_NONE;
}

/* Ops that finish the storage in place do so again. */
static ms_err want_writers(ms_books *books, uint32_t storage, uint32_t *n)
{
    const ms_graph *graph = books->graph;
    uint32_t last = graph->storage_local_end[storage];
    for (uint32_t op = graph->storage_maker[storage] + 1;
         last != MS_NONE && op <= last; op++)
        if (written(graph, op) == storage && ms_graph_is_forward(graph, op))
            MS_TRY(push_work(books, n, op));
    return MS_OK;
}

/* What a unit of another rank makes cannot be made again here. */
static ms_err is_elsewhere(ms_books *books, const ms_books_at *at,
                           uint32_t storage, uint32_t reader)
{
    const ms_graph *graph = books->graph;
    char name[MS_STORAGE_NAME];
    uint32_t maker = graph->storage_maker[storage];
    uint32_t unit = maker == MS_NONE ? MS_NONE : graph->op_unit[maker];
    if (!books->staged || unit == MS_NONE ||
        ms_stage_has(books->staged, at->rank, unit))
        return MS_OK;
    return ms_fail(books->fault, MS_EINPUT, graph->name,
                   "give the rank a stage with both units",
                   "rank %u: %s (op %u) reads %s, which unit %u (%s) of "
                   "another rank makes",
                   (unsigned)at->rank, graph->op_name[reader], reader,
                   ms_graph_storage_name(graph, storage, name), unit,
                   graph->unit_name[unit]);
}

/* Asks for the maker of storage to run again, unless it was asked already. */
static ms_err want_maker(ms_books *books, const ms_books_at *at,
                         uint32_t storage, uint32_t reader, uint32_t *n)
{
    const ms_graph *graph = books->graph;
    uint32_t maker = graph->storage_maker[storage];
    uint32_t c = ms_books_cell(books, at, storage);
    MS_TRY(is_elsewhere(books, at, storage, reader));
    if (maker == MS_NONE || !(books->state[c] & MS_REF_MADE) ||
        !ms_graph_is_forward(graph, maker))
        return cannot_make(books, storage, reader);
    if (books->op_stamp[maker] != books->tick)
        MS_TRY(push_work(books, n, maker));
    if (books->stamp[storage] == books->tick)
        return MS_OK;
    books->stamp[storage] = books->tick;
    return want_writers(books, storage, n);
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
            bool found;
            if (books->row[c] != MS_NONE)
                continue;
            MS_TRY(bring(books, at, s, &found));
            if (!found)
                MS_TRY(want_maker(books, at, s, op, n));
        }
    }
    return MS_OK;
}

ms_err ms_bind_storage(ms_books *books, const ms_books_at *at, uint32_t storage,
                       uint32_t reader)
{
    uint32_t n = 0, cell = ms_books_cell(books, at, storage);
    bool found;
    MS_TRY(bring(books, at, storage, &found));
    if (found)
        return MS_OK;
    MS_TRY(next_tick(books, at));
    MS_TRY(want_maker(books, at, storage, reader, &n));
    MS_TRY(collect(books, at, &n));
    qsort(books->work, n, sizeof *books->work, by_number);
    pin_list(books, n);
    for (uint32_t i = 0; i < n; i++)
        MS_TRY(rerun_pinned(books, at, books->work[i], reader));
    for (uint32_t i = 0; i < n; i++)
        end_outputs(books, at, books->work[i], true);
    if (books->row[cell] == MS_NONE)
        return cannot_make(books, storage, reader);
    return MS_OK;
}

/* Runs the ops of the list, in order, and keeps what the set under way asks
 * for.  Locals end where they did in forward, at an op that does not run again,
 * too. */
static ms_err rerun_list(ms_books *books, const ms_books_at *at, uint32_t n)
{
    uint32_t *ops = books->work, next = 0; /* nothing below asks for more */
    if (n == 0)
        return MS_OK;
    qsort(ops, n, sizeof *ops, by_number);
    pin_list(books, n);
    for (uint32_t op = ops[0]; next < n; op++) {
        if (op != ops[next]) {
            end_locals(books, at, op);
            continue;
        }
        next++;
        MS_TRY(rerun_pinned(books, at, op, MS_NONE));
    }
    for (uint32_t i = 0; i < n; i++)
        end_outputs(books, at, ops[i], true);
    return MS_OK;
}

/* A storage that is made again gets its HOLD at once; otherwise it could be
 * freed behind its last reader. */
static ms_err remake_set(ms_books *books, const ms_books_at *at,
                         const ms_program *program, uint32_t set)
{
    uint32_t n = 0;
    books->run++;
    ms_books_open_set(books, program, set);
    MS_TRY(next_tick(books, at));
    for (uint32_t i = program->set_at[set]; i < program->set_at[set + 1]; i++) {
        uint32_t s = program->set_item[i];
        uint32_t c = ms_books_cell(books, at, s);
        if (books->row[c] == MS_NONE && !ms_books_away(books, c))
            MS_TRY(want_maker(books, at, s, MS_NONE, &n));
    }
    MS_TRY(collect(books, at, &n));
    MS_TRY(rerun_list(books, at, n));
    ms_gather_close_unit(books, at);
    return MS_OK;
}

ms_err ms_bind_hold(ms_books *books, const ms_books_at *at,
                    const ms_program *program, const ms_call *call)
{
    uint32_t set = call->set;
    bool again = call->hold.again;
    if (set == MS_ALL || set == MS_NOTHING)
        return MS_OK;
    if (again)
        MS_TRY(remake_set(books, at, program, set));
    ms_books_hold_set(books, at, program, set, call->hold.saves);
    if (again)
        ms_books_close_set(books, at, program, set);
    return MS_OK;
}

ms_err ms_bind_for_step(ms_books *books, const ms_books_at *at, uint32_t op,
                        uint32_t storage)
{
    uint8_t stream = books->graph->op_stream[op];
    uint32_t c = ms_books_cell(books, at, storage);
    if (stream == MS_STREAM_HOST)
        return ms_move_to_host(books, at, storage);
    if (stream != MS_STREAM_COMPUTE || books->row[c] != MS_NONE ||
        ms_books_in(books->shard_row, c) != MS_NONE)
        return MS_OK;
    return ms_books_far(books, c) ? ms_bind_storage(books, at, storage, op)
                                  : MS_OK;
}

/* ---- whole units (activation checkpointing) ------------------------------ */

static bool is_needed(const ms_books *books, const ms_books_at *at,
                      uint32_t storage, uint32_t saved_from)
{
    uint32_t saved_end = books->graph->storage_saved_end[storage];
    bool wanted = (saved_end != MS_NONE && saved_end >= saved_from) ||
                  books->stamp[storage] == books->tick;
    return wanted && books->row[ms_books_cell(books, at, storage)] == MS_NONE;
}

/* Stamps the ops of a unit whose results the backward of the units that run
 * again needs, and the storages that these read.  saved_from: first backward op
 * of the last of these units.  This is the early stop of torch's non-reentrant
 * checkpoint (_StopRecomputationError), to the op. */
static void want_unit(ms_books *books, const ms_books_at *at,
                      const ms_books_replay *replay, uint32_t unit,
                      uint32_t saved_from)
{
    const ms_graph *graph = books->graph;
    uint32_t from = graph->forward_at[replay->unit];
    uint32_t first = graph->forward_at[unit];
    books->tick = replay->wanted;
    for (uint32_t op = graph->forward_at[unit + 1]; op-- > first;) {
        uint32_t in_place = written(graph, op);
        bool needed = in_place != MS_NONE &&
                      graph->storage_maker[in_place] >= from &&
                      is_needed(books, at, in_place, saved_from);
        for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++)
            needed |= is_needed(books, at, graph->out[i], saved_from);
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
        books->tick = tick; /* making the input was a rerun of its own */
    }
    return MS_OK;
}

static ms_err open_rerun(ms_books *books, const ms_books_at *at, uint32_t unit)
{
    return ms_gather_open_unit(books, at, books->graph->forward_at[unit],
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
    if (call->state.to == MS_GONE)
        return MS_OK;
    return make_state(books, at, states[call->unit], &books->row[c]);
}

static ms_err open_replay(ms_books *books, const ms_books_at *at,
                          const ms_call *call, ms_books_replay *replay)
{
    const ms_graph *graph = books->graph;
    *replay =
        (ms_books_replay){.open = true, .unit = call->unit, .state = MS_NONE};
    if (call->rerun.state && graph->unit_state)
        MS_TRY(make_state(books, at, graph->unit_state[call->unit],
                          &replay->state));
    /* Two ticks: with one, an input that want_unit has stamped as wanted would
     * count as made by this replay, and its reference would be ended. */
    MS_TRY(next_tick(books, at));
    replay->wanted = books->tick;
    MS_TRY(next_tick(books, at));
    replay->tick = books->tick;
    return MS_OK;
}

static ms_err rerun_unit(ms_books *books, const ms_books_at *at,
                         const ms_call *call, const ms_books_replay *replay,
                         uint32_t unit)
{
    const ms_graph *graph = books->graph;
    bool whole = call->rerun.whole;
    uint32_t end = graph->forward_at[unit + 1];
    books->tick = replay->tick;
    MS_TRY(open_rerun(books, at, unit));
    for (uint32_t op = graph->forward_at[unit]; op < end; op++) {
        if (!whole && books->op_stamp[op] != replay->wanted) {
            end_locals(books, at, op);
            continue;
        }
        ms_eviction_pin(books, op, true);
        MS_TRY(bind_inputs(books, at, op));
        MS_TRY(rerun_pinned(books, at, op, graph->backward_at[call->last + 1]));
    }
    ms_gather_close_unit(books, at);
    return MS_OK;
}

static void end_unit(ms_books *books, const ms_books_at *at,
                     const ms_books_replay *replay, uint32_t unit)
{
    const ms_graph *graph = books->graph;
    books->tick = replay->tick;
    for (uint32_t op = graph->forward_at[unit];
         op < graph->forward_at[unit + 1]; op++)
        end_outputs(books, at, op, true);
}

ms_err ms_bind_step(ms_books *books, const ms_books_at *at, const ms_call *call,
                    ms_bind_stage stage, uint32_t unit)
{
    const ms_graph *graph = books->graph;
    ms_books_replay *replay = &books->replays[at->rank];
    switch (stage) {
    case MS_BIND_OPEN:
        return open_replay(books, at, call, replay);
    case MS_BIND_WANT:
        if (!call->rerun.whole)
            want_unit(books, at, replay, unit,
                      graph->backward_at[call->last + 1]);
        return MS_OK;
    case MS_BIND_RUN:
        return rerun_unit(books, at, call, replay, unit);
    case MS_BIND_STATE:
        if (replay->state != MS_NONE)
            ms_books_give(books, replay->state);
        replay->state = MS_NONE;
        return MS_OK;
    case MS_BIND_END:
        if (!call->rerun.holds)
            end_unit(books, at, replay, unit);
        return MS_OK;
    case MS_N_BIND_STAGES:
        break;
    }
    return MS_OK;
}

ms_err ms_bind_units(ms_books *books, const ms_books_at *at,
                     const ms_call *call)
{
    uint32_t last = call->rerun.part ? call->unit : call->last;
    MS_TRY(open_stamps(books, at));
    ms_books_replay *replay = &books->replays[at->rank];
    if (!replay->open) {
        MS_TRY(ms_bind_step(books, at, call, MS_BIND_OPEN, call->unit));
        for (uint32_t u = call->last + 1; u-- > call->unit;)
            MS_TRY(ms_bind_step(books, at, call, MS_BIND_WANT, u));
    }
    for (uint32_t u = call->unit; u <= last; u++)
        MS_TRY(ms_bind_step(books, at, call, MS_BIND_RUN, u));
    if (last < call->last)
        return MS_OK;
    MS_TRY(ms_bind_step(books, at, call, MS_BIND_STATE, last));
    for (uint32_t u = replay->unit; u <= last; u++)
        MS_TRY(ms_bind_step(books, at, call, MS_BIND_END, u));
    replay->open = false;
    return MS_OK;
}
