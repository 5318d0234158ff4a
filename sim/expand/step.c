/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The optimizer step is the same in every plan of a graph: its ops make and
 * end only temporaries of their own.  It is booked once, when the graph is
 * prepared, and copied with shifted row numbers afterwards; for a 175B model
 * with foreach AdamW that is a third of all rows (tests/bench). */
#include "sim/expand/books.h"
#include "sim/graph.h"

#include <string.h>

static bool is_of_step(const ms_graph *graph, uint32_t op)
{
    return op != MS_NONE && op >= graph->step_first;
}

/* The copy is not valid where the step creates states that outlive it (a first
 * step) or ends a .grad that was made before it: then it is booked anew. */
static bool changes_persistent(const ms_graph *graph)
{
    for (uint32_t s = 0; s < graph->n_persistent; s++)
        if (is_of_step(graph, graph->storage_maker[s]) ||
            is_of_step(graph, graph->storage_local_end[s]))
            return true;
    return false;
}

static void *copy_of(ms_arena *arena, const void *items, size_t n, size_t size)
{
    void *copy = ms_arena_take_raw(arena, n, size);
    if (copy && n > 0)
        memcpy(copy, items, n * size);
    return copy;
}

/* The columns of a plan that append reads. */
static ms_err keep_plan(const ms_plan *plan, ms_arena *arena, ms_plan **kept,
                        ms_fault *fault)
{
    ms_plan *step = ms_arena_take(arena, 1, sizeof *step);
    if (!step)
        return ms_fail_nomem(fault);
    *step = (ms_plan){.n_ops = plan->n_ops, .n_rows = plan->n_rows};
    step->op =
        copy_of(arena, plan->op, (size_t)plan->n_ops + 1, sizeof *plan->op);
    step->row = copy_of(arena, plan->row, plan->n_rows, sizeof *plan->row);
    step->release =
        copy_of(arena, plan->release, plan->op[plan->n_ops].release_at,
                sizeof *plan->release);
    if (!step->op || !step->row || !step->release)
        return ms_fail_nomem(fault);
    *kept = step;
    return MS_OK;
}

ms_err ms_step_prepare(ms_graph *graph, ms_arena *arena, ms_arena *scratch,
                       ms_fault *fault)
{
    static const ms_expand_opts opts;
    static const ms_program empty = {.n_frames = 1, .n_ranks = 1};
    ms_plan plan = {.graph = graph}, *step = NULL;
    ms_books books = {.graph = graph,
                      .opts = &opts,
                      .arena = scratch,
                      .plan = &plan,
                      .fault = fault};
    graph->step = NULL;
    if (graph->due_first)
        return MS_OK;
    MS_TRY(ms_books_open(&books, &empty));
    if (books.streams || changes_persistent(graph))
        return MS_OK;
    ms_books_at at = ms_books_at_of(&books, 0, 0, 0);
    uint32_t first = graph->step_first, end = graph->n_ops;
    books.complete = true; /* what the step reads exists: run_step asks */
    MS_TRY(ms_books_reserve(&books, end - first,
                            graph->out_at[end] - graph->out_at[first], 0));
    for (uint32_t op = first; op < end; op++)
        MS_TRY(ms_rununit_op(&books, &at, op));
    MS_TRY(ms_books_close(&books));
    MS_TRY(keep_plan(&plan, arena, &step, fault));
    graph->step = step;
    return MS_OK;
}

static void copy_rows(ms_books *books, const ms_plan *step, uint32_t first_op)
{
    ms_plan *plan = books->plan;
    uint32_t first_row = plan->n_rows;
    uint32_t n_release = step->op[step->n_ops].release_at;
    if (step->n_rows > 0)
        memcpy(plan->row + first_row, step->row,
               step->n_rows * sizeof *step->row);
    for (uint32_t r = first_row; r < first_row + step->n_rows; r++)
        plan->row[r].op += first_op;
    for (uint32_t i = 0; i < n_release; i++)
        plan->release[books->n_release + i] = step->release[i] + first_row;
    plan->n_rows += step->n_rows;
    books->n_release += n_release;
}

ms_err ms_step_append(ms_books *books, const ms_books_at *at)
{
    const ms_plan *step = books->graph->step;
    ms_plan *plan = books->plan;
    uint32_t first_row = plan->n_rows, first_release = books->n_release;
    uint32_t first_op = plan->n_ops;
    MS_TRY(ms_books_reserve(books, step->n_ops, step->n_rows, 0));
    for (uint32_t i = 0; i < step->n_ops; i++) {
        ms_books_issue(books, at, step->op[i].of, step->op[i].pass,
                       step->op[i].stream, step->op[i].ns);
        plan->op[first_op + i].alloc_at = first_row + step->op[i].alloc_at;
        plan->op[first_op + i].release_at =
            first_release + step->op[i].release_at;
    }
    copy_rows(books, step, first_op);
    return MS_OK;
}

/* Is the op of the host's cores or its disk? */
static bool is_far(uint8_t stream)
{
    return stream == MS_STREAM_HOST || stream == MS_STREAM_NVME_READ ||
           stream == MS_STREAM_NVME_WRITE;
}

/* Is the op in this part of the step? */
static bool is_in(const ms_graph *graph, uint32_t op, uint8_t place)
{
    return place == MS_HERE ||
           is_far(graph->op_stream[op]) == (place == MS_HOST);
}

static void drop_besides(ms_books *books, uint32_t *rows, uint32_t cell)
{
    if (ms_books_in(rows, cell) == MS_NONE)
        return;
    ms_books_give(books, rows[cell]);
    rows[cell] = MS_NONE;
}

/* Drops the copies that were brought to where op works; what lasts lies in its
 * home memory. */
static void let_go(ms_books *books, const ms_books_at *at, uint32_t op)
{
    const ms_graph *graph = books->graph;
    for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++) {
        uint32_t s = graph->in[i], c = s + at->persistent;
        if (s >= graph->n_persistent)
            continue;
        uint8_t home = ms_books_pool(books, s);
        bool here = books->row[c] != MS_NONE ||
                    ms_books_in(books->shard_row, c) != MS_NONE;
        if (!here || !ms_books_far(books, c))
            continue;
        if (home != MS_HOST_POOL)
            drop_besides(books, books->host_row, c);
        if (home == MS_DEVICE_POOL)
            continue;
        drop_besides(books, books->row, c);
        drop_besides(books, books->shard_row, c);
    }
}

/* The step reads every .grad: each must exist by now, but where parts of the
 * step may have ended it. */
static ms_err find_grads(ms_books *books, const ms_books_at *at)
{
    const ms_graph *graph = books->graph;
    for (uint32_t i = 0; i < graph->n_step_in && !graph->due_first; i++) {
        uint32_t s = graph->step_in[i];
        char name[MS_STORAGE_NAME];
        uint32_t c = s + at->persistent;
        if (ms_books_found(books, c) == MS_NONE && ms_books_holds(books, at, s))
            return ms_fail(books->fault, MS_EINPUT, graph->name,
                           "run the backward of every unit before the step",
                           "the optimizer step reads %s, which no backward "
                           "has made",
                           ms_graph_storage_name(graph, s, name));
    }
    return MS_OK;
}

/* One op.  What is left of a delayed step writes weights that backward reads:
 * it waits for the compute stream as it was before. */
static ms_err run_op(ms_books *books, const ms_books_at *at, uint32_t op,
                     uint32_t before)
{
    MS_TRY(ms_cutstep_op(books, at, op));
    if (books->graph->op_flags[op] & MS_OP_GATHERS)
        ms_gather_home(books);
    if (before == MS_NONE || books->graph->op_stream[op] != MS_STREAM_H2D)
        return MS_OK;
    MS_TRY(ms_books_reserve(books, 0, 0, 1));
    books->plan->wait[books->n_wait++] = before;
    return MS_OK;
}

/* A program that calls for no part of the step calls for all of it. */
static uint32_t first_of(const ms_books *books, const ms_step_call *how)
{
    if (how->behind)
        return ms_graph_norm_end(books->graph);
    return books->ran_due ? books->graph->step_all : books->graph->step_first;
}

ms_err ms_step_run(ms_books *books, const ms_books_at *at,
                   const ms_step_call *how)
{
    const ms_graph *graph = books->graph;
    uint8_t place = how->part;
    uint32_t first = first_of(books, how);
    uint32_t end = how->norms ? ms_graph_norm_end(graph) : graph->n_ops;
    uint32_t before = MS_NONE;
    if (place == MS_PENDING && books->streams)
        before = books->last_compute[at->rank];
    if (place != MS_HOST && !how->behind) /* its gradients are of the step
                                             before, or were found there */
        MS_TRY(find_grads(books, at));
    books->complete = false;
    if (graph->step && !books->reads && !books->stage_holds && !how->norms &&
        !how->behind)
        return ms_step_append(books, at);
    for (uint32_t op = first; op < end; op++)
        if (is_in(graph, op, place))
            MS_TRY(run_op(books, at, op, before));
    for (uint32_t op = first; op < end; op++)
        if (books->host_row && is_in(graph, op, place))
            let_go(books, at, op);
    return MS_OK;
}

ms_err ms_step_run_due(ms_books *books, const ms_books_at *at,
                       const uint32_t *storages, uint32_t n)
{
    const ms_graph *graph = books->graph;
    books->complete = false;
    books->ran_due = true;
    for (uint32_t i = 0; graph->due_first && i < n; i++)
        for (uint32_t op = graph->due_first[storages[i]];
             op < graph->due_end[storages[i]]; op++)
            MS_TRY(ms_cutstep_op(books, at, op));
    return MS_OK;
}
