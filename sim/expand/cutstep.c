/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ops of the step on a rank that has a part of the model (sim/stage.h): what
 * the rank does not hold, an op neither reads, makes nor ends there. */
#include "sim/expand/books.h"
#include "sim/expand/move.h"
#include "sim/graph.h"

#include <math.h>

/* value * part / whole, rounded up. */
static uint64_t cut(uint64_t value, ms_stage_share share)
{
    double part = (double)share.part / (double)share.whole;
    double made = ceil((double)value * part);
    return made < (double)value ? (uint64_t)made : value;
}

static ms_err bring_inputs(ms_books *books, const ms_books_at *at, uint32_t op)
{
    const ms_graph *graph = books->graph;
    uint32_t first = graph->in_at[op], end = graph->in_at[op + 1];
    for (uint32_t i = first; i < end; i++) {
        uint32_t s = graph->in[i];
        if (s < graph->n_persistent && ms_books_holds(books, at, s))
            MS_TRY(ms_bind_for_step(books, at, op, s));
    }
    return ms_books_reserve(books, 1, graph->out_at[op + 1] - graph->out_at[op],
                            end - first);
}

/* What the op copies or gathers is the rank's share, too. */
static ms_err note_bytes(ms_books *books, uint32_t op, ms_stage_share share,
                         uint64_t *ns)
{
    const ms_graph *graph = books->graph;
    ms_plan *plan = books->plan;
    uint32_t first = plan->n_transfers;
    *ns = graph->op_ns[op];
    if (books->streams)
        MS_TRY(graph->op_flags[op] & MS_OP_GATHERS
                   ? ms_gather_note_step(books, op, ns)
                   : ms_move_note_step(books, op));
    for (uint32_t i = first; i < plan->n_transfers; i++) {
        plan->transfers[i].bytes = cut(plan->transfers[i].bytes, share);
        plan->transfers[i].network_bytes =
            cut(plan->transfers[i].network_bytes, share);
    }
    *ns = cut(*ns, share);
    return MS_OK;
}

static bool comes(const ms_books *books, const ms_books_at *at, uint32_t s)
{
    const ms_graph *graph = books->graph;
    return ms_stage_comes(
        graph, books->stage_holds + (size_t)at->rank * graph->n_storages, s);
}

static void read_inputs(ms_books *books, const ms_books_at *at, uint32_t op)
{
    const ms_graph *graph = books->graph;
    bool far = graph->op_stream[op] == MS_STREAM_HOST;
    for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++) {
        if (!comes(books, at, graph->in[i]))
            continue;
        uint32_t c = ms_books_cell(books, at, graph->in[i]);
        uint32_t row = ms_books_found(books, c);
        if (far && ms_books_in(books->host_row, c) != MS_NONE)
            row = books->host_row[c];
        if (row != MS_NONE)
            ms_books_write(books, row);
    }
}

static void make(ms_books *books, const ms_books_at *at, uint32_t op)
{
    const ms_graph *graph = books->graph;
    for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++) {
        uint32_t s = graph->out[i];
        if (!ms_books_holds(books, at, s))
            continue;
        uint32_t c = ms_books_cell(books, at, s);
        if (s < graph->n_persistent && books->row[c] != MS_NONE)
            continue;
        uint32_t row = ms_books_take(books, s, graph->storage_category[s],
                                     ms_books_pool(books, s), false);
        ms_books_hold(books, c, row, graph->storage_refs[s]);
    }
    for (uint32_t i = graph->drop_at[op]; i < graph->drop_at[op + 1]; i++) {
        uint32_t drop = graph->drop[i];
        if (!comes(books, at, MS_DROP_STORAGE(drop)))
            continue;
        uint32_t c = ms_books_cell(books, at, MS_DROP_STORAGE(drop));
        ms_books_end(
            books, c,
            (uint8_t)((uint32_t)MS_REF_LOCAL << (drop & MS_DROP_SAVED)));
    }
}

static ms_err run_part(ms_books *books, const ms_books_at *at, uint32_t op,
                       ms_stage_share share)
{
    const ms_graph *graph = books->graph;
    uint64_t ns;
    MS_TRY(bring_inputs(books, at, op));
    MS_TRY(note_bytes(books, op, share, &ns));
    ms_books_issue(books, at, op, graph->op_pass[op], graph->op_stream[op], ns);
    double part = (double)share.part / (double)share.whole * 0x1p32;
    books->plan->op[books->plan->n_ops - 1].cut =
        part < 1.0 ? 1 : (uint32_t)fmin(part, UINT32_MAX);
    if (books->reads)
        read_inputs(books, at, op);
    make(books, at, op);
    return MS_OK;
}

ms_err ms_cutstep_op(ms_books *books, const ms_books_at *at, uint32_t op)
{
    const ms_graph *graph = books->graph;
    if (!books->stage_holds)
        return ms_rununit_op(books, at, op);
    const uint8_t *held =
        books->stage_holds + (size_t)at->rank * graph->n_storages;
    ms_stage_share share = ms_stage_share_of(graph, held, op);
    if (share.part == 0)
        return MS_OK;
    return share.part == share.whole ? ms_rununit_op(books, at, op)
                                     : run_part(books, at, op, share);
}
