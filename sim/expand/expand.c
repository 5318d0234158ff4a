/* SPDX-License-Identifier: GPL-3.0-or-later */
/* expand: walk the program's calls, each booked by the file of its verb. */
#include "sim/expand/hooks.h"
#include "sim/expand/move.h"
#include "sim/expand/views/halves.h"
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/program.h"

#include <assert.h>

/* ---- calls --------------------------------------------------------------- */

static void drop_set(ms_books *books, const ms_books_at *at,
                     const ms_program *program, uint32_t set)
{
    if (set == MS_ALL || set == MS_NOTHING)
        return;
    for (uint32_t i = program->set_at[set]; i < program->set_at[set + 1]; i++)
        ms_books_unhold(books, ms_books_cell(books, at, program->set_item[i]));
}

/* Ends the local references that a RERUN with HOLD_OUTPUTS left. */
static void drop_units(ms_books *books, const ms_books_at *at,
                       const ms_call *call)
{
    const ms_graph *graph = books->graph;
    uint32_t end = graph->out_at[graph->forward_at[call->last + 1]];
    if (call->unit == MS_NONE)
        return;
    for (uint32_t i = graph->out_at[graph->forward_at[call->unit]]; i < end;
         i++)
        ms_books_end(books, ms_books_cell(books, at, graph->out[i]),
                     MS_REF_LOCAL);
}

static ms_err move_set(ms_books *books, const ms_books_at *at,
                       const ms_program *program, const ms_call *call)
{
    if (call->set == MS_ALL || call->set == MS_NOTHING)
        return MS_OK;
    const uint32_t *set = program->set_item + program->set_at[call->set];
    uint32_t n = program->set_at[call->set + 1] - program->set_at[call->set];
    uint8_t to = call->move.to;
    /* The order matters for SHARD: parts are copied out of the wholes, then a
     * buffer takes over the row of one, and only then do the wholes go. */
    if (to == MS_PACKED)
        return ms_pack_into(books, at, set, n, call);
    if (to == MS_SHARD)
        ms_gather_let_go(books, at);
    if (to == MS_HERE && books->packed)
        MS_TRY(ms_pack_out(books, at, set, n, call->move.ahead));
    if (to == MS_SHARD && books->shard_row)
        MS_TRY(ms_gather_make_parts(books, at, set, n));
    if (to == MS_SHARD && call->buffer != MS_NONE && n > 0)
        MS_TRY(ms_pack_keep(books, at, set[0], call->buffer));
    if (to == MS_SHARD && books->shard_row)
        MS_TRY(ms_gather_divide(books, at, set, n));
    for (uint32_t i = 0; i < n; i++)
        MS_TRY(ms_move_storage(books, at, set[i], call->move));
    return MS_OK;
}

static ms_err collect_set(ms_books *books, const ms_books_at *at,
                          const ms_program *program, const ms_call *call)
{
    uint32_t first = 0, n = 0;
    if (call->set != MS_ALL && call->set != MS_NOTHING) {
        first = program->set_at[call->set];
        n = program->set_at[call->set + 1] - first;
    }
    const uint32_t *set = program->set_item + first;
    if (call->verb == MS_SYNC)
        return ms_move_sync(books, at, set, n, call);
    if (call->verb == MS_WAIT)
        return ms_move_wait(books, at, set, n, call->buffer);
    if (call->verb == MS_GATHER)
        return ms_gather_gather(books, at, set, n, call);
    return ms_gather_reduce(books, at, set, n, call);
}

static ms_err run_step(ms_books *books, const ms_books_at *at,
                       const ms_program *program, const ms_call *call)
{
    if (call->set == MS_ALL)
        return ms_step_run(books, at, &call->step);
    if (call->set == MS_NOTHING)
        return MS_OK;
    uint32_t first = program->set_at[call->set];
    return ms_step_run_due(books, at, program->set_item + first,
                           program->set_at[call->set + 1] - first);
}

static ms_err do_task(ms_books *books, const ms_books_at *at,
                      const ms_program *program, const ms_call *call)
{
    const ms_task *task = &program->tasks[call->work.task];
    bool has_set = call->set != MS_ALL && call->set != MS_NOTHING;
    uint32_t first = has_set ? program->set_at[call->set] : 0;
    uint32_t n = has_set ? program->set_at[call->set + 1] - first : 0;
    return ms_work_run(books, at, task, program->set_item + first, n);
}

static ms_err add_mark(ms_books *books, const ms_call *call)
{
    ms_plan *plan = books->plan;
    struct ms_plan_mark *marks =
        ms_arena_grow(books->arena, plan->marks, &books->marks_capacity,
                      plan->n_marks + 1, sizeof *marks);
    if (!marks)
        return ms_fail_nomem(books->fault);
    plan->marks = marks;
    marks[plan->n_marks++] =
        (struct ms_plan_mark){.mark = call->mark.mark,
                              .rank = call->rank,
                              .micro_batch = call->micro_batch,
                              .op = plan->n_ops - 1,
                              .releases = books->n_release};
    return MS_OK;
}

ms_err ms_expand_call(ms_books *books, const ms_books_at *at,
                      const ms_program *program, const ms_call *call)
{
    switch ((ms_verb)call->verb) {
    case MS_RUN:
        return ms_rununit_call(books, at, program, call);
    case MS_RERUN:
        return ms_bind_units(books, at, call);
    case MS_MOVE:
        return move_set(books, at, program, call);
    case MS_STEP_SET:
        return run_step(books, at, program, call);
    case MS_HOLD:
        return ms_bind_hold(books, at, program, call);
    case MS_DROP_SET:
        drop_set(books, at, program, call->set);
        drop_units(books, at, call);
        return MS_OK;
    case MS_STATE:
        return ms_bind_state(books, at, call);
    case MS_SYNC:
    case MS_WAIT:
    case MS_GATHER:
    case MS_REDUCE:
        return collect_set(books, at, program, call);
    case MS_TAKE:
        return ms_pack_take(books, at, call->buffer);
    case MS_GIVE:
        return ms_pack_give(books, at, call->buffer);
    case MS_WORK:
        return do_task(books, at, program, call);
    case MS_SEND_SET: /* messages.c */
    case MS_RECV_SET:
    case MS_MARK:
    case MS_N_VERBS:
        assert(false);
    }
    return MS_OK;
}

static ms_err expand_one(ms_books *books, const ms_books_at *at,
                         const ms_program *program, const ms_call *call)
{
    if (books->hooked)
        MS_TRY(ms_hooks_rest(books, at, call));
    if (call->verb == MS_MARK)
        return add_mark(books, call);
    return ms_expand_call(books, at, program, call);
}

static ms_err expand_calls(ms_books *books, const ms_program *program)
{
    if (books->meetings || ms_books_has(program, MS_SEND_SET) ||
        ms_books_has(program, MS_RECV_SET))
        return ms_messages_walk(books, program, expand_one);
    for (uint32_t i = 0; i < program->n_calls; i++) {
        const ms_call *call = &program->calls[i];
        ms_books_at at =
            ms_books_at_of(books, call->rank, call->frame, call->micro_batch);
        ms_books_turn_to(books, call->rank, call->micro_batch);
        MS_TRY(expand_one(books, &at, program, call));
    }
    return MS_OK;
}

static ms_err make_views(ms_books *books, const ms_program *program)
{
    const ms_roles *roles = &books->roles;
    MS_TRY(ms_roles_open(books->graph, program, books->arena, &books->roles,
                         books->fault));
    if (program->n_stages == 0)
        return MS_OK;
    ms_graph *views = ms_arena_take(books->arena, roles->n, sizeof *views);
    if (!views)
        return ms_fail_nomem(books->fault);
    for (uint32_t role = 0; role < roles->n; role++)
        MS_TRY(ms_stageview_make(books->graph, roles, role, books->arena,
                                 &views[role], books->fault));
    books->views = views;
    return MS_OK;
}

/* Up to so many ops and rows there is room from the start: columns that grow in
 * an arena that was reset are copied each time.  Beyond, they lie alone, and
 * grow without a copy. */
#define MOST_GUESSED (1u << 20)

/* The ops that a call runs at most, of the graph. */
static uint32_t ops_of(const ms_graph *graph, const ms_call *call,
                       uint32_t *first)
{
    switch ((ms_verb)call->verb) {
    case MS_RUN:
        if (call->run.pass == MS_FORWARD) {
            *first = graph->forward_at[call->unit];
            return graph->forward_at[call->unit + 1] - *first;
        }
        *first = graph->backward_at[call->unit + 1];
        return graph->backward_at[call->unit] - *first;
    case MS_RERUN:
        *first = graph->forward_at[call->unit];
        return graph->forward_at[call->last + 1] - *first;
    case MS_STEP_SET:
        *first = graph->step_first;
        return call->set == MS_ALL ? graph->n_ops - *first : 0;
    default:
        *first = 0;
        return 0;
    }
}

/* A first guess of what the calls run, and of a copy and a wait for what most
 * of them name: rarely grown. */
static ms_err make_room(ms_books *books, const ms_program *program)
{
    const ms_graph *graph = books->graph;
    uint32_t ops = 1, rows = graph->n_start, first, n;
    uint32_t copies = books->streams ? 4 * program->n_calls : 0;
    for (uint32_t i = 0; i < program->n_calls && ops < MOST_GUESSED; i++) {
        n = ops_of(graph, &program->calls[i], &first);
        ops += n;
        rows += graph->out_at[first + n] - graph->out_at[first];
    }
    return ms_books_reserve(books, ops + copies, rows + copies, copies);
}

ms_err ms_expand(const ms_graph *graph, const ms_program *program,
                 const ms_expand_opts *opts, ms_arena *arena, ms_plan *plan,
                 ms_fault *fault)
{
    ms_graph prepared = *graph;
    ms_books books = {.graph = &prepared,
                      .opts = opts,
                      .arena = arena,
                      .plan = plan,
                      .fault = fault};
    if (!graph->storage_refs)
        MS_TRY(ms_prepare_graph(&prepared, arena, fault));
    *plan = (ms_plan){.graph = graph,
                      .n_ranks = program->n_ranks,
                      .stages = program->stages,
                      .n_stages = program->n_stages,
                      .buffers = program->buffers,
                      .saved_in = program->saved_in,
                      .n_micro_batches = program->n_micro_batches,
                      .overlaps = program->overlaps};
    MS_TRY(ms_books_open(&books, program));
    MS_TRY(ms_hooks_open(&books, program));
    MS_TRY(ms_eviction_open(&books, program));
    MS_TRY(ms_meetings_open(&books, program));
    MS_TRY(make_room(&books, program));
    for (uint32_t r = 0; r < program->n_ranks; r++)
        MS_TRY(ms_start_rank(&books, (uint16_t)r));
    MS_TRY(make_views(&books, program));
    MS_TRY(ms_halves_open(&prepared, books.views, &books.roles, program, arena,
                          &books.halves, fault));
    MS_TRY(expand_calls(&books, program));
    MS_TRY(ms_books_close(&books));
    ms_books_drop(&books);
    return MS_OK;
}
