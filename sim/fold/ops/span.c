/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/fold/ops/span.h"

#include "sim/expand/move.h"
#include "sim/fold/calls/question.h"
#include "sim/fold/cells/rowkind.h"
#include "sim/fold/ops/recipe.h"
#include "sim/graph.h"
#include "sim/measure/requests.h"

#include <string.h>

/* What is noted of one call. */
typedef struct noter {
    ms_spans *spans;
    ms_cells *cells;
    const ms_question *question;
    ms_span *span;
    ms_fault *fault;
} noter;

/* Room for one entry more of a list; capacity: the index of its own. */
static ms_err reserve(const noter *it, void *list, uint32_t capacity,
                      uint32_t n, size_t size)
{
    void *grown, *now;
    memcpy(&now, list, sizeof now);
    grown = ms_arena_grow(it->spans->arena, now, &it->spans->capacity[capacity],
                          n + 1, size);
    if (grown == NULL)
        return ms_fail_nomem(it->fault);
    memcpy(list, &grown, sizeof grown);
    return MS_OK;
}

#define PUT(it, list, count, capacity, ...)                                    \
    do {                                                                       \
        MS_TRY(reserve((it), &(it)->spans->list, (capacity),                   \
                       (it)->spans->count, sizeof *(it)->spans->list));        \
        (it)->spans->list[(it)->spans->count++] = (__VA_ARGS__);               \
    } while (0)

/* ---- names --------------------------------------------------------------- */

static ms_earlier name_of(const noter *it, uint32_t storage, uint8_t column)
{
    const ms_classes *classes = it->cells->classes;
    return (ms_earlier){
        MS_EARLIER_CELL, column,
        ms_classes_seen(classes, it->question->base, classes->owner[storage]),
        classes->index[storage]};
}

static ms_earlier call_of(uint32_t number)
{
    return (ms_earlier){MS_EARLIER_CALL, 0, 0, number};
}

static bool is_same(ms_earlier a, ms_earlier b)
{
    return a.kind == b.kind && a.column == b.column && a.owner == b.owner &&
           a.index == b.index;
}

/* Of a row of another memory than the device's. */
static ms_earlier row_of(const noter *it, uint32_t row)
{
    return row >= it->cells->first_row ? call_of(it->spans->number[row])
                                       : it->cells->row[row];
}

static bool is_far(const noter *it, uint32_t row)
{
    return it->cells->plan.row[row].pool != MS_DEVICE_POOL;
}

/* ---- ops ----------------------------------------------------------------- */

/* Whose bytes these are: a storage's, or a buffer's (MS_NONE). */
static ms_err note_bytes(const noter *it, uint32_t storage, uint64_t bytes,
                         ms_span_use use, uint32_t at)
{
    ms_rowkind_whose size = ms_rowkind_size(it->cells, storage, bytes);
    it->spans->fixed |= size == MS_ROWKIND_OTHER && storage != MS_NONE;
    PUT(it, term, n_terms, 11,
        (ms_span_term){bytes, storage, at, (uint8_t)use, (uint8_t)size});
    return MS_OK;
}

static ms_err note_term(const noter *it, uint32_t row, ms_span_use use,
                        uint32_t at)
{
    const ms_row *from = &it->cells->plan.row[row];
    return note_bytes(it, from->storage, from->bytes, use, at);
}

static ms_err note_transfers(const noter *it)
{
    const ms_plan *plan = &it->cells->plan;
    for (uint32_t i = 0; i < plan->n_transfers; i++) {
        struct ms_transfer transfer = plan->transfers[i];
        transfer.op -= it->cells->first_op;
        PUT(it, transfer, n_transfers, 4, transfer);
        if (transfer.copied != MS_NONE)
            MS_TRY(note_bytes(it, transfer.copied, transfer.bytes, MS_SPAN_COPY,
                              i));
    }
    return MS_OK;
}

static ms_err note_rows(const noter *it, uint32_t first, uint32_t end)
{
    ms_spans *spans = it->spans;
    for (uint32_t r = first; r < end; r++) {
        ms_row row = it->cells->plan.row[r];
        if (!is_far(it, r))
            continue;
        ms_earlier cell = {MS_EARLIER_BUFFER, 0, 0, 0};
        if (row.storage != MS_NONE)
            cell = name_of(it, row.storage, 0);
        else
            cell.index = ms_question_local(it->question, row.buffer);
        row.op -= it->cells->first_op;
        spans->number[r] = spans->n_rows - it->span->row;
        MS_TRY(note_term(it, r, MS_SPAN_ROW, spans->number[r]));
        PUT(it, row, n_rows, 0, (ms_span_row){row, cell});
    }
    return MS_OK;
}

/* Behind an op (MS_NONE: before the first one). */
static ms_err note_release(const noter *it, uint32_t row, uint32_t op,
                           uint64_t *given_bytes)
{
    const ms_plan *plan = &it->cells->plan;
    const ms_row *from = &plan->row[row];
    ms_streams streams = ms_active_foreign(plan, from);
    if (is_far(it, row))
        PUT(it, release, n_releases, 1,
            (ms_span_release){row_of(it, row), from->streams});
    else if (streams == 0)
        *given_bytes += from->bytes;
    else
        PUT(it, late, n_late, 10, (ms_span_late){op, streams, from->bytes});
    if (is_far(it, row))
        return MS_OK;
    return streams == 0 ? note_term(it, row, MS_SPAN_GIVEN, op)
                        : note_term(it, row, MS_SPAN_LATER,
                                    it->spans->n_late - 1 - it->span->late);
}

/* Ops of units are counted from the first one of the unit's side. */
static void name_op(const noter *it, ms_span_op *to)
{
    const ms_graph *graph = it->cells->graph;
    uint32_t of = to->op.of;
    to->unit = MS_SPAN_ALL;
    if (of == MS_NONE || of >= graph->step_first)
        return;
    uint32_t unit = graph->op_unit[of];
    to->backward = of >= graph->backward_at[graph->n_units];
    to->unit = (int32_t)unit - (int32_t)it->question->base;
    to->op.of -=
        to->backward ? graph->backward_at[unit + 1] : graph->forward_at[unit];
}

/* The time of an op of the graph is the graph's, but for what it gathers. */
static void name_time(const noter *it, ms_span_op *to)
{
    const ms_graph *graph = it->cells->graph;
    uint32_t of = to->op.of;
    to->timed = MS_NONE;
    if (of == MS_NONE || graph->op_flags[of] & MS_OP_GATHERS)
        return;
    to->timed = of;
    it->spans->fixed |= to->op.ns != graph->op_ns[of];
}

static ms_err note_taken(const noter *it, uint32_t first, uint32_t end,
                         uint32_t op, uint64_t *bytes)
{
    *bytes = 0;
    for (uint32_t r = first; r < end; r++) {
        if (is_far(it, r))
            continue;
        *bytes += it->cells->plan.row[r].bytes;
        MS_TRY(note_term(it, r, MS_SPAN_TAKEN, op));
    }
    return MS_OK;
}

static ms_err note_op(const noter *it, uint32_t op)
{
    const ms_plan *plan = &it->cells->plan;
    ms_spans *spans = it->spans;
    uint32_t row = plan->op[op].alloc_at, end = plan->op[op + 1].alloc_at;
    uint32_t number = op - it->cells->first_op;
    ms_span_op to = {.op = plan->op[op],
                     .wait_at = spans->n_waits - it->span->wait,
                     .takes = row < end};
    to.op.alloc_at = spans->n_rows - it->span->row;
    to.op.release_at = spans->n_releases - it->span->release;
    name_time(it, &to);
    name_op(it, &to);
    MS_TRY(note_taken(it, row, end, number, &to.taken_bytes));
    if (plan->op[op].stream == MS_STREAM_COMPUTE)
        it->span->compute = number;
    for (uint32_t i = plan->wait_at[op]; i < plan->wait_at[op + 1]; i++)
        PUT(it, wait, n_waits, 3, ms_cells_who(it->cells, plan->wait[i]));
    MS_TRY(note_rows(it, row, end));
    for (uint32_t i = plan->op[op].release_at; i < plan->op[op + 1].release_at;
         i++)
        MS_TRY(note_release(it, plan->release[i], number, &to.given_bytes));
    PUT(it, op, n_ops, 2, to);
    return MS_OK;
}

static ms_err note_ops(const noter *it)
{
    const ms_plan *plan = &it->cells->plan;
    uint32_t first = it->cells->first_op;
    for (uint32_t i = 0; i < plan->op[first].release_at; i++)
        MS_TRY(note_release(it, plan->release[i], MS_NONE,
                            &it->span->given_bytes));
    it->span->before = it->spans->n_releases - it->span->release;
    for (uint32_t op = first; op < plan->n_ops; op++)
        MS_TRY(note_op(it, op));
    MS_TRY(note_transfers(it));
    for (uint32_t i = 0; i < plan->n_sync; i++)
        PUT(it, sync, n_syncs, 5,
            (ms_span_sync){plan->sync[i].op - first,
                           ms_cells_who(it->cells, plan->sync[i].until)});
    return MS_OK;
}

/* ---- who wrote what last ------------------------------------------------- */

static ms_err tie(const noter *it, ms_earlier to, ms_earlier by, bool far)
{
    if (is_same(to, by))
        return MS_OK;
    it->span->moves |= far || by.kind > MS_EARLIER_CALL;
    PUT(it, tie, n_ties, 6, (ms_span_tie){to, by, far});
    return MS_OK;
}

/* What was written at the start is known by the kind of its row. */
static ms_err tie_row(const noter *it, ms_earlier to, uint32_t row)
{
    ms_earlier by = ms_cells_who(it->cells, it->cells->books.ready_op[row]);
    if (by.kind != MS_EARLIER_START)
        MS_TRY(tie(it, to, by, false));
    return is_far(it, row) ? tie(it, to, row_of(it, row), true) : MS_OK;
}

static ms_err tie_owner(const noter *it, uint32_t owner)
{
    const ms_cells *cells = it->cells;
    const ms_classes *classes = cells->classes;
    for (uint32_t i = classes->cell_at[owner]; i < classes->cell_at[owner + 1];
         i++) {
        uint32_t s = classes->cell[i];
        for (uint32_t k = 0; k < cells->n_columns; k++) {
            uint32_t row = ms_cells_rows(cells, cells->column[k])[s];
            if (row != MS_NONE)
                MS_TRY(tie_row(it, name_of(it, s, cells->column[k]), row));
        }
        uint32_t in = ms_books_in(cells->books.packed, s);
        if (in != MS_NONE)
            PUT(it, packed, n_packed, 7,
                (ms_span_packed){name_of(it, s, 0),
                                 ms_question_local(it->question, in)});
    }
    return MS_OK;
}

static ms_err tie_buffer(const noter *it, uint32_t number)
{
    const ms_books *books = &it->cells->books;
    uint32_t buffer = it->question->buffer[number], kind;
    uint32_t row = books->buffer_row[buffer];
    uint32_t read = books->buffer_read[buffer];
    MS_TRY(ms_rowkind_find(it->cells, row, MS_NONE, &kind, it->fault));
    PUT(it, kind, n_kinds, 8, kind);
    if (row == MS_NONE)
        return MS_OK;
    MS_TRY(tie_row(it, (ms_earlier){MS_EARLIER_BUFFER, 0, 0, number}, row));
    ms_earlier by = {MS_EARLIER_START, 0, 0, 0};
    if (read != MS_NONE)
        by = ms_cells_who(it->cells, read);
    return tie(it, (ms_earlier){MS_EARLIER_READER, 0, 0, number}, by, false);
}

static ms_err tie_side(const noter *it)
{
    uint32_t side = it->cells->books.last_side[0];
    if (side == MS_NONE || side < it->cells->first_op)
        return MS_OK;
    it->span->side = it->cells->plan.op[side].stream;
    return tie(it, (ms_earlier){MS_EARLIER_SIDE, 0, 0, 0},
               ms_cells_who(it->cells, side), false);
}

static ms_err note_ties(const noter *it)
{
    const ms_question *question = it->question;
    for (uint32_t i = 0; i < question->n_owners; i++)
        MS_TRY(tie_owner(it, question->owner[i]));
    for (uint32_t i = 0; i < question->n_buffers; i++)
        MS_TRY(tie_buffer(it, i));
    return tie_side(it);
}

/* ---- spans --------------------------------------------------------------- */

void ms_span_open(ms_spans *spans, ms_arena *arena)
{
    *spans = (ms_spans){.arena = arena};
}

static void close_span(const ms_spans *spans, ms_span *span)
{
    span->n_ops = spans->n_ops - span->op;
    span->n_waits = spans->n_waits - span->wait;
    span->n_rows = spans->n_rows - span->row;
    span->n_releases = spans->n_releases - span->release;
    span->n_syncs = spans->n_syncs - span->sync;
    span->n_transfers = spans->n_transfers - span->transfer;
    span->n_ties = spans->n_ties - span->tie;
    span->n_packed = spans->n_packed - span->packed;
    span->n_kinds = spans->n_kinds - span->kind;
    span->n_late = spans->n_late - span->late;
    span->n_terms = spans->n_terms - span->term;
}

ms_err ms_span_learn(ms_spans *spans, ms_cells *cells,
                     const ms_question *question, uint32_t *id, ms_fault *fault)
{
    ms_span span = {.op = spans->n_ops,
                    .wait = spans->n_waits,
                    .row = spans->n_rows,
                    .release = spans->n_releases,
                    .sync = spans->n_syncs,
                    .transfer = spans->n_transfers,
                    .tie = spans->n_ties,
                    .packed = spans->n_packed,
                    .kind = spans->n_kinds,
                    .late = spans->n_late,
                    .term = spans->n_terms,
                    .compute = MS_NONE};
    noter it = {spans, cells, question, &span, fault};
    uint32_t *number =
        ms_arena_grow(spans->arena, spans->number, &spans->number_capacity,
                      cells->plan.n_rows + 1, sizeof *number);
    if (number == NULL)
        return ms_fail_nomem(fault);
    spans->number = number;
    MS_TRY(note_ops(&it));
    MS_TRY(note_ties(&it));
    close_span(spans, &span);
    MS_TRY(reserve(&it, &spans->span, 9, spans->n, sizeof span));
    *id = spans->n;
    spans->span[spans->n++] = span;
    return MS_OK;
}

/* ---- numbers ------------------------------------------------------------- */

static void clear_numbers(ms_spans *spans, ms_span *span, const ms_graph *graph)
{
    span->given_bytes = 0;
    for (uint32_t i = 0; i < span->n_ops; i++) {
        ms_span_op *op = &spans->op[span->op + i];
        op->taken_bytes = op->given_bytes = 0;
        if (op->timed != MS_NONE)
            op->op.ns = graph->op_ns[op->timed];
    }
}

static void renumber_copy(const ms_spans *spans, const ms_span *span,
                          const ms_expand_opts *opts, uint32_t at,
                          uint64_t bytes)
{
    struct ms_transfer *it = &spans->transfer[span->transfer + at];
    it->bytes = bytes;
    spans->op[span->op + it->op].op.ns = ms_move_copy_ns(
        opts, (ms_transfer_kind)it->kind, it->pageable, it->straight, bytes);
}

static void renumber_term(const ms_spans *spans, ms_span *span,
                          const ms_expand_opts *opts, const ms_span_term *term,
                          uint64_t bytes)
{
    ms_span_op *op = spans->op + span->op;
    switch ((ms_span_use)term->use) {
    case MS_SPAN_TAKEN:
        op[term->at].taken_bytes += bytes;
        break;
    case MS_SPAN_GIVEN:
        *(term->at == MS_NONE ? &span->given_bytes
                              : &op[term->at].given_bytes) += bytes;
        break;
    case MS_SPAN_LATER:
        spans->late[span->late + term->at].bytes = bytes;
        break;
    case MS_SPAN_ROW:
        spans->row[span->row + term->at].row.bytes = bytes;
        break;
    case MS_SPAN_COPY:
        renumber_copy(spans, span, opts, term->at, bytes);
        break;
    }
}

void ms_span_renumber(ms_spans *spans, const ms_cells *cells, uint32_t id)
{
    ms_span *span = &spans->span[id];
    const ms_span_term *term = spans->term + span->term;
    clear_numbers(spans, span, cells->graph);
    for (const ms_span_term *end = term + span->n_terms; term < end; term++) {
        ms_rowkind_whose size = (ms_rowkind_whose)term->size;
        uint64_t bytes = size == MS_ROWKIND_OTHER
                             ? term->bytes
                             : ms_rowkind_bytes(cells, size, term->storage);
        renumber_term(spans, span, cells->books.opts, term, bytes);
    }
}

/* The bytes of the late ones behind an op, from *at on. */
static uint64_t late_bytes(const ms_spans *spans, const ms_span *span,
                           uint32_t op, uint32_t *at)
{
    const ms_span_late *late = spans->late + span->late;
    uint64_t bytes = 0;
    for (; *at < span->n_late && late[*at].op == op; ++*at)
        bytes += late[*at].bytes;
    return bytes;
}

ms_effect ms_span_effect(const ms_spans *spans, uint32_t id,
                         const ms_machine *machine)
{
    const ms_span *span = &spans->span[id];
    const ms_span_op *op = spans->op + span->op;
    uint32_t at = 0;
    ms_effect effect = {0};
    effect.level_bytes -=
        (int64_t)(span->given_bytes + late_bytes(spans, span, MS_NONE, &at));
    for (uint32_t i = 0; i < span->n_ops; i++)
        effect = ms_effect_then(
            effect,
            ms_recipe_op(machine, op[i].op.ns, op[i].op.pass, op[i].taken_bytes,
                         op[i].given_bytes + late_bytes(spans, span, i, &at)));
    return effect;
}
