/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs of a unit's ops: what each allocates, and what the host drops after it.
 */
#include "sim/expand/rununit.h"
#include "sim/expand/hooks.h"
#include "sim/expand/move.h"
#include "sim/expand/views/halves.h"
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/program.h"

/* ---- what an op makes and ends ------------------------------------------- */

/* The loops over what an op makes and ends are the work of expand.  The
 * pointers to the columns that they touch are copied into a local struct: a
 * store to a uint8_t column may alias anything that books points to, so that
 * the compiler would have to read the pointers again for each storage. */
typedef struct columns {
    const uint32_t *out_at, *out, *drop_at, *drop;
    const uint8_t *category, *refs, *pool;
    const uint64_t *bytes;
    uint32_t n_persistent, persistent, frame;
    uint32_t *row, *release;
    uint8_t *state;
    ms_row *rows;
    ms_plan_op *op;
    uint32_t n_rows, n_release, n_ops;
    uint32_t *held, run; /* books->held where a RUN's set is held, else NULL */
    bool elsewhere;      /* copies may lie in other columns than row */
    /* with several streams: */
    const uint32_t *in_at, *in;
    uint32_t *ready_op, *wait_at, *wait, *last_compute;
    uint32_t n_wait, own; /* own: ops from it on are of the compute stream */
} columns;

static inline columns open_columns(const ms_books *books, const ms_books_at *at)
{
    const ms_graph *graph = books->graph;
    const ms_plan *plan = books->plan;
    return (columns){.out_at = graph->out_at,
                     .out = graph->out,
                     .drop_at = graph->drop_at,
                     .drop = graph->drop,
                     .category = graph->storage_category,
                     .refs = graph->storage_refs,
                     .pool = graph->storage_pool,
                     .bytes = graph->storage_bytes,
                     .n_persistent = graph->n_persistent,
                     .persistent = at->persistent,
                     .frame = at->frame,
                     .row = books->row,
                     .release = plan->release,
                     .state = books->state,
                     .rows = plan->row,
                     .op = plan->op,
                     .n_rows = plan->n_rows,
                     .n_release = books->n_release,
                     .n_ops = plan->n_ops,
                     .held = books->holds ? books->held : NULL,
                     .run = books->run,
                     .elsewhere = books->host_row || books->nvme_row ||
                                  books->shard_row || books->packed,
                     .in_at = graph->in_at,
                     .in = graph->in,
                     .ready_op = books->ready_op,
                     .wait_at = plan->wait_at,
                     .wait = plan->wait,
                     .last_compute = books->last_compute,
                     .n_wait = books->n_wait,
                     .own = plan->n_ops};
}

static inline void close_columns(const columns *w, ms_books *books)
{
    books->plan->n_rows = w->n_rows;
    books->plan->n_ops = w->n_ops;
    books->n_release = w->n_release;
    books->n_wait = w->n_wait;
}

static inline uint32_t cell_of(const columns *w, uint32_t storage)
{
    return storage + (storage < w->n_persistent ? w->persistent : w->frame);
}

static bool is_nowhere_else(const ms_books *books, uint32_t cell)
{
    return !ms_books_away(books, cell);
}

/* ms_books_lose for the common case, a cell that lies in no column but row. */
static inline void lose(ms_books *books, columns *w, uint32_t cell)
{
    if (w->row[cell] != MS_NONE) {
        w->release[w->n_release++] = w->row[cell];
        w->row[cell] = MS_NONE;
        if (!w->elsewhere || is_nowhere_else(books, cell))
            return;
    }
    /* Copies lie in other columns, or the row was stolen (see steal). */
    books->n_release = w->n_release;
    ms_books_lose(books, cell);
    w->n_release = books->n_release;
}

/* A gradient buffer that ends as .grad counts as gradients from the start,
 * unless .grad exists and the buffer will be added to it.  Where the ranks
 * share .grad, the whole of it is on its way to a reduction. */
static inline uint8_t grad_category(const ms_books *books, const columns *w,
                                    uint32_t s)
{
    uint32_t grad = books->graph->storage_grad[s], c = cell_of(w, grad);
    if (w->row[c] != MS_NONE)
        return MS_TEMPORARIES;
    return ms_books_reduced(books, grad) ? MS_COMMUNICATION : MS_GRADIENTS;
}

/* Does this RUN keep the SAVED reference of storage s? */
static inline bool is_kept(const ms_books *books, uint32_t keep, uint32_t s)
{
    return keep == MS_ALL ||
           (keep != MS_NOTHING && books->kept[s] == books->run);
}

/* Books the outputs of op, which has just been issued.  Inlining is forced
 * because gcc does not inline what two loops call; the call would cost 3 of 29
 * ns per op. */
static inline __attribute__((always_inline)) void
make(ms_books *books, columns *w, uint32_t keep, uint32_t op)
{
    for (uint32_t i = w->out_at[op]; i < w->out_at[op + 1]; i++) {
        uint32_t s = w->out[i], c = cell_of(w, s);
        uint8_t refs = w->refs[s], category = w->category[s];
        if (s < w->n_persistent && w->row[c] != MS_NONE)
            continue; /* made once */
        if (refs & MS_REF_SAVED && !is_kept(books, keep, s)) {
            if (i > w->out_at[op] && ms_books_spares(books, op))
                continue;
            refs &= (uint8_t)~MS_REF_SAVED;
        }
        if (w->held && w->held[s] == w->run) {
            refs += MS_REF_HOLD;
            w->held[s] = MS_NONE;
        }
        if (category == MS_ACTIVATIONS && !(refs & MS_REF_SAVED))
            category = MS_TEMPORARIES;
        else if (category == MS_BECOMES_GRAD)
            category = grad_category(books, w, s);
        if (w->state[c] & MS_REF_ANY)
            lose(books, w, c); /* a variable bound anew */
        w->rows[w->n_rows] =
            (ms_row){.bytes = w->bytes[s],
                     .storage = s,
                     .op = w->n_ops - 1,
                     .category = category,
                     .pool = w->pool ? w->pool[s] : MS_DEVICE_POOL,
                     .saved = refs & MS_REF_SAVED};
        w->state[c] = refs;
        w->row[c] = w->n_rows++;
        if (!(refs & MS_REF_ANY))
            lose(books, w, c);
    }
}

/* Ends the references that the graph ends after op. */
static inline void end_references(ms_books *books, columns *w, uint32_t op)
{
    for (uint32_t i = w->drop_at[op]; i < w->drop_at[op + 1]; i++) {
        uint32_t drop = w->drop[i], c = cell_of(w, MS_DROP_STORAGE(drop));
        uint32_t bit = (uint32_t)MS_REF_LOCAL << (drop & MS_DROP_SAVED);
        uint32_t before = w->state[c], after = before & ~bit;
        w->state[c] = (uint8_t)after;
        if (before != after && !(after & MS_REF_ANY))
            lose(books, w, c);
    }
}

/* ---- forward ------------------------------------------------------------- */

/* Makes op's inputs present and room for it. */
static ms_err prepare(ms_books *books, const ms_books_at *at, uint32_t op)
{
    const ms_graph *graph = books->graph;
    uint32_t first = graph->in_at[op], end = graph->in_at[op + 1];
    for (uint32_t i = first; i < end; i++) {
        uint32_t s = graph->in[i], c = ms_books_cell(books, at, s);
        if (s < graph->n_persistent && op >= graph->step_first)
            MS_TRY(ms_bind_for_step(books, at, op, s));
        else if (books->row[c] == MS_NONE)
            MS_TRY(ms_bind_storage(books, at, s, op));
    }
    if (books->evictions)
        MS_TRY(ms_eviction_room(books, at, op));
    return ms_books_reserve(books, 1, graph->out_at[op + 1] - graph->out_at[op],
                            end - first);
}

/* What has been bound stays while the rest is. */
static ms_err prepare_pinned(ms_books *books, const ms_books_at *at,
                             uint32_t op)
{
    if (!books->evictions)
        return prepare(books, at, op);
    ms_eviction_pin(books, op, true);
    ms_err err = prepare(books, at, op);
    ms_eviction_pin(books, op, false);
    return err;
}

/* The row of an input, which the op may update in place. */
static void touch(ms_books *books, const ms_books_at *at, uint32_t op,
                  uint32_t storage, bool writes)
{
    const ms_graph *graph = books->graph;
    uint32_t c = ms_books_cell(books, at, storage);
    uint32_t row = ms_books_found(books, c);
    if (graph->op_stream[op] == MS_STREAM_HOST &&
        ms_books_in(books->host_row, c) != MS_NONE)
        row = books->host_row[c];
    if (row != MS_NONE && writes)
        ms_books_write(books, row);
    else if (row != MS_NONE)
        ms_books_read(books, row);
}

static ms_err issue(ms_books *books, const ms_books_at *at, uint32_t op)
{
    const ms_graph *graph = books->graph;
    if (!books->complete)
        MS_TRY(prepare_pinned(books, at, op));
    uint64_t ns = graph->op_ns[op];
    if (books->streams && ms_books_meets(books, op))
        MS_TRY(ms_gather_note_meeting(books, op));
    else if (books->streams)
        MS_TRY(graph->op_flags[op] & MS_OP_GATHERS
                   ? ms_gather_note_step(books, op, &ns)
                   : ms_move_note_step(books, op));
    ms_books_issue(books, at, op, graph->op_pass[op], graph->op_stream[op], ns);
    if (!books->reads)
        return MS_OK;
    /* What the step reads it may update, and a collective that makes nothing
     * does. */
    bool writes =
        graph->op_pass[op] == MS_STEP || ms_gather_meets_in_place(books, op);
    for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++)
        touch(books, at, op, graph->in[i], writes);
    return MS_OK;
}

/* Is everything that ops [first, end) read from other units here?  Then none of
 * them has to check its inputs. */
static ms_err look_ahead(ms_books *books, const ms_books_at *at,
                         const uint32_t *in_at, const uint32_t *in,
                         uint32_t first, uint32_t end)
{
    const ms_graph *graph = books->graph;
    bool here = !books->reads && !books->evictions;
    for (uint32_t i = in_at[0]; here && i < in_at[1]; i++)
        here = books->row[in[i] + at->frame] != MS_NONE;
    books->complete = here;
    return ms_books_reserve(books, end - first,
                            graph->out_at[end] - graph->out_at[first], 0);
}

static void note_kept(ms_books *books, const ms_program *program, uint32_t set)
{
    books->run++;
    if (set == MS_ALL || set == MS_NOTHING)
        return;
    for (uint32_t i = program->set_at[set]; i < program->set_at[set + 1]; i++)
        books->kept[program->set_item[i]] = books->run;
}

/* AccumulateGrad (torch/csrc/autograd/functions/accumulate_grad.h): without a
 * .grad the incoming buffer is stolen, or cloned where something else holds
 * it or its layout differs; with one, it is added in place. */
static inline bool steal(ms_books *books, const ms_books_at *at, columns *w,
                         uint32_t op)
{
    const ms_graph *graph = books->graph;
    uint32_t buffer = cell_of(w, graph->in[graph->in_at[op]]);
    uint32_t grad = cell_of(w, w->out[w->out_at[op]]);
    if (w->row[grad] != MS_NONE || graph->op_flags[op] & MS_OP_CLONES)
        return false;
    w->row[grad] = w->row[buffer];
    w->state[grad] = ms_books_grad_refs(graph, graph->out[graph->out_at[op]]);
    w->state[buffer] &= (uint8_t)~MS_REF_ANY;
    if (!(graph->op_flags[op] & MS_OP_SHARES))
        w->row[buffer] = MS_NONE;
    /* without an op of its own, behind which to drop what ends */
    books->strays |= w->op[w->n_ops - 1].rank != at->rank;
    return true;
}

static ms_err clone_or_add(ms_books *books, const ms_books_at *at, uint32_t op)
{
    uint32_t grad = books->graph->out[books->graph->out_at[op]];
    uint32_t c = ms_books_cell(books, at, grad);
    MS_TRY(issue(books, at, op));
    if (books->row[c] == MS_NONE) {
        bool shared = ms_books_reduced(books, grad);
        uint8_t category = shared ? MS_COMMUNICATION : MS_GRADIENTS;
        books->row[c] =
            ms_books_take(books, grad, category, MS_DEVICE_POOL, false);
        books->state[c] = ms_books_grad_refs(books->graph, grad);
    } else if (books->reads) { /* a collective may be at work on it */
        MS_TRY(ms_books_reserve(books, 0, 0, 1));
        ms_books_write(books, books->row[c]);
    }
    return MS_OK;
}

static inline ms_err accumulate(ms_books *books, const ms_books_at *at,
                                columns *w, uint32_t op)
{
    if (steal(books, at, w, op))
        return MS_OK;
    close_columns(w, books);
    MS_TRY(clone_or_add(books, at, op));
    *w = open_columns(books, at);
    return MS_OK;
}

/* Runs one op, after making present whatever input is missing. */
static ms_err run_op(ms_books *books, const ms_books_at *at, uint32_t keep,
                     uint32_t op)
{
    if (books->hooked)
        MS_TRY(ms_hooks_unpack(books, at, op));
    bool adds = books->graph->op_pass[op] == MS_ACCUMULATE;
    if (!adds)
        MS_TRY(issue(books, at, op));
    columns w = open_columns(books, at);
    if (adds)
        MS_TRY(accumulate(books, at, &w, op));
    else
        make(books, &w, keep, op);
    uint32_t first = books->plan->n_rows;
    if (books->hooked) {
        close_columns(&w, books);
        ms_books_made(books, first);
        MS_TRY(ms_hooks_pack(books, at, op));
        w = open_columns(books, at);
        first = books->plan->n_rows;
    }
    if (books->evictions)
        ms_eviction_ran(books, at, op);
    end_references(books, &w, op);
    close_columns(&w, books);
    if (ms_books_meets(books, op))
        ms_gather_home(books);
    if (books->reads)
        ms_books_made(books, first);
    return books->hooked ? ms_hooks_let_go(books, at, op) : MS_OK;
}

/* Runs ops [first, end), all of whose inputs are known to be here. */
static ms_err run_complete(ms_books *books, const ms_books_at *at,
                           uint32_t keep, uint32_t first, uint32_t end)
{
    const ms_graph *graph = books->graph;
    columns w = open_columns(books, at);
    for (uint32_t op = first; op < end; op++) {
        if (graph->op_pass[op] == MS_ACCUMULATE) {
            MS_TRY(accumulate(books, at, &w, op));
        } else {
            w.op[w.n_ops++] = (ms_plan_op){.ns = graph->op_ns[op],
                                           .of = op,
                                           .micro_batch = at->micro_batch,
                                           .alloc_at = w.n_rows,
                                           .release_at = w.n_release,
                                           .pass = graph->op_pass[op],
                                           .stream = graph->op_stream[op],
                                           .rank = at->rank};
            make(books, &w, keep, op);
        }
        end_references(books, &w, op);
    }
    close_columns(&w, books);
    return MS_OK;
}

/* ---- with several streams ------------------------------------------------ */

/* As ms_books_read of a row of the rank's own, by an op of its compute stream.
 */
static inline void read_row(columns *w, uint32_t row, uint16_t rank)
{
    uint32_t writer = w->ready_op[row];
    w->rows[row].streams |= 1u << MS_STREAM_COMPUTE;
    if (writer >= w->own)
        return;
    const ms_plan_op *it = &w->op[writer];
    if ((it->stream == MS_STREAM_COMPUTE && it->rank == rank) ||
        it->pass == MS_START)
        return;
    if (w->n_wait == w->wait_at[w->n_ops - 1] ||
        w->wait[w->n_wait - 1] != writer)
        w->wait[w->n_wait++] = writer;
}

static inline bool are_here(const columns *w, uint32_t op)
{
    for (uint32_t i = w->in_at[op]; i < w->in_at[op + 1]; i++)
        if (w->row[cell_of(w, w->in[i])] == MS_NONE)
            return false;
    return true;
}

/* An op of the compute stream, no collective, that reads what is here. */
static inline bool is_plain(const ms_graph *graph, const columns *w,
                            uint32_t op)
{
    if (graph->op_stream[op] != MS_STREAM_COMPUTE ||
        (graph->op_meets != NULL && graph->op_meets[op] != 0) ||
        !are_here(w, op))
        return false;
    return graph->op_pass[op] != MS_ACCUMULATE ||
           w->row[cell_of(w, w->out[w->out_at[op]])] != MS_NONE;
}

/* Issues a plain op; of one that accumulates .grad is there. */
static inline void run_plain(ms_books *books, const ms_books_at *at, columns *w,
                             uint32_t keep, uint32_t op)
{
    const ms_graph *graph = books->graph;
    uint8_t pass = graph->op_pass[op];
    uint32_t i = w->n_ops++, first = w->n_rows;
    w->op[i] = (ms_plan_op){.ns = graph->op_ns[op],
                            .of = op,
                            .micro_batch = at->micro_batch,
                            .alloc_at = first,
                            .release_at = w->n_release,
                            .pass = pass,
                            .stream = MS_STREAM_COMPUTE,
                            .rank = at->rank};
    w->wait_at[i] = w->n_wait;
    w->last_compute[at->rank] = i;
    for (uint32_t k = w->in_at[op]; k < w->in_at[op + 1]; k++)
        read_row(w, w->row[cell_of(w, w->in[k])], at->rank);
    if (pass == MS_ACCUMULATE) {
        uint32_t grad = w->row[cell_of(w, w->out[w->out_at[op]])];
        read_row(w, grad, at->rank);
        w->ready_op[grad] = i;
        return;
    }
    make(books, w, keep, op);
    for (uint32_t row = first; row < w->n_rows; row++)
        w->ready_op[row] = i;
}

/* Room for ops [first, end), which read what they add to as well. */
static ms_err make_room(ms_books *books, uint32_t first, uint32_t end)
{
    const ms_graph *graph = books->graph;
    return ms_books_reserve(
        books, end - first, graph->out_at[end] - graph->out_at[first],
        graph->in_at[end] - graph->in_at[first] + end - first);
}

/* Is nobody asked before or behind each op? */
static bool runs_in_one_go(const ms_books *books)
{
    return books->streams && !books->opts->uses && books->hooked == NULL &&
           books->evictions == NULL;
}

/* As run_op one by one, the plain ones at once.  half: per op, in which of the
 * two halves it runs, if only one of them does now. */
static ms_err run_streams(ms_books *books, const ms_books_at *at, uint32_t keep,
                          uint32_t first, uint32_t end, const uint8_t *half,
                          uint8_t which)
{
    const ms_graph *graph = books->graph;
    MS_TRY(make_room(books, first, end));
    columns w = open_columns(books, at);
    for (uint32_t op = first; op < end; op++) {
        bool adds = graph->op_pass[op] == MS_ACCUMULATE;
        if (half != NULL && half[op] != which)
            continue;
        if (adds && steal(books, at, &w, op)) {
            end_references(books, &w, op);
        } else if (is_plain(graph, &w, op)) {
            run_plain(books, at, &w, keep, op);
            end_references(books, &w, op);
        } else {
            close_columns(&w, books);
            MS_TRY(run_op(books, at, keep, op));
            MS_TRY(make_room(books, op + 1, end));
            w = open_columns(books, at);
        }
    }
    close_columns(&w, books);
    return MS_OK;
}

static ms_err run_ops(ms_books *books, const ms_books_at *at, uint32_t keep,
                      uint32_t first, uint32_t end)
{
    if (books->complete)
        return run_complete(books, at, keep, first, end);
    if (runs_in_one_go(books))
        return run_streams(books, at, keep, first, end, NULL, 0);
    for (uint32_t op = first; op < end; op++)
        MS_TRY(run_op(books, at, keep, op));
    return MS_OK;
}

ms_err ms_rununit_op(ms_books *books, const ms_books_at *at, uint32_t op)
{
    return run_op(books, at, MS_ALL, op);
}

ms_err ms_rununit_begin(ms_books *books, const ms_books_at *at,
                        const ms_program *program, const ms_call *call,
                        ms_unitrun *run)
{
    const ms_graph *graph = books->graph;
    bool forward = call->run.pass == MS_FORWARD;
    uint32_t u = call->unit;
    run->keep = forward ? call->run.keep : MS_ALL;
    run->next = forward ? graph->forward_at[u] : graph->backward_at[u + 1];
    run->end = forward ? graph->forward_at[u + 1] : graph->backward_at[u];
    if (forward) {
        note_kept(books, program, call->run.keep);
        ms_books_open_set(books, program, call->set);
    }
    MS_TRY(look_ahead(
        books, at, (forward ? graph->unit_in_at : graph->back_in_at) + u,
        forward ? graph->unit_in : graph->back_in, run->next, run->end));
    return ms_gather_open_unit(books, at, run->next, run->end);
}

ms_err ms_rununit_go(ms_books *books, const ms_books_at *at, ms_unitrun *run,
                     uint32_t end)
{
    uint32_t first = run->next;
    run->next = end;
    return run_ops(books, at, run->keep, first, end);
}

void ms_rununit_end(ms_books *books, const ms_books_at *at,
                    const ms_program *program, const ms_call *call)
{
    ms_gather_close_unit(books, at);
    if (call->run.pass != MS_FORWARD)
        return;
    ms_books_hold_set(books, at, program, call->set, call->run.saves);
    ms_books_close_set(books, at, program, call->set);
}

/* The ops of one half, in their order; whole backwards of the rank see another
 * graph. */
static ms_err run_half(ms_books *books, const ms_books_at *at,
                       const ms_call *call, uint32_t first, uint32_t end)
{
    const ms_graph *whole = books->graph;
    const uint8_t *half = books->halves->second;
    bool second = call->run.pass == MS_GRAD_WEIGHT;
    ms_err err = MS_OK;
    books->graph =
        &books->halves
             ->views[ms_roles_of(&books->roles, at->rank, at->micro_batch)];
    books->complete = false;
    books->in_half = true;
    if (runs_in_one_go(books))
        err = run_streams(books, at, MS_ALL, first, end, half, second);
    else
        for (uint32_t op = first; op < end && err == MS_OK; op++)
            if (half[op] == second)
                err = run_op(books, at, MS_ALL, op);
    books->in_half = false;
    books->graph = whole;
    return err;
}

ms_err ms_rununit_call(ms_books *books, const ms_books_at *at,
                       const ms_program *program, const ms_call *call)
{
    const ms_graph *graph = books->graph;
    ms_unitrun run;
    if (call->run.pass != MS_FORWARD && call->run.half)
        return run_half(books, at, call, graph->backward_at[call->unit + 1],
                        graph->backward_at[call->unit]);
    MS_TRY(ms_rununit_begin(books, at, program, call, &run));
    MS_TRY(ms_rununit_go(books, at, &run, run.end));
    ms_rununit_end(books, at, program, call);
    return MS_OK;
}
