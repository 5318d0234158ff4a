/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/fold/ops/tape.h"

#include "sim/fold/calls/question.h"
#include "sim/graph.h"
#include "sim/program.h"

#include <string.h>

/* A span that is put behind the others. */
typedef struct putter {
    ms_tape *tape;
    const ms_spans *spans;
    const ms_span *span;
    const ms_question *question;
    uint32_t micro_batch;
    uint32_t first_op, first_row; /* of the span, on the tape */
} putter;

/* ---- names --------------------------------------------------------------- */

static uint32_t storage_of(const putter *it, ms_earlier cell)
{
    const ms_classes *classes = it->tape->classes;
    uint32_t owner = ms_classes_owner(classes, it->question->base, cell.owner);
    return classes->cell[classes->cell_at[owner] + cell.index];
}

static ms_tape_buffer *buffer_of(const putter *it, ms_earlier buffer)
{
    return &it->tape->buffer[it->question->buffer[buffer.index]];
}

/* The op of the tape; MS_NONE: all of them. */
static uint32_t find_op(const putter *it, ms_earlier who)
{
    const ms_tape *tape = it->tape;
    switch ((ms_earlier_kind)who.kind) {
    case MS_EARLIER_START:
        return 0;
    case MS_EARLIER_CALL:
        return it->first_op + who.index;
    case MS_EARLIER_CELL:
        return tape->ready[who.column][storage_of(it, who)];
    case MS_EARLIER_BUFFER:
        return buffer_of(it, who)->ready;
    case MS_EARLIER_READER:
        return buffer_of(it, who)->read;
    case MS_EARLIER_COMPUTE:
        return tape->compute;
    case MS_EARLIER_SIDE:
        return tape->side;
    case MS_EARLIER_LIMIT:
        return tape->limit[1];
    case MS_EARLIER_ALL:
        break;
    }
    return MS_NONE;
}

/* The row of another memory. */
static uint32_t find_row(const putter *it, ms_earlier who)
{
    if (who.kind == MS_EARLIER_CALL)
        return it->first_row + who.index;
    if (who.kind == MS_EARLIER_BUFFER)
        return buffer_of(it, who)->row;
    return it->tape->far[who.column][storage_of(it, who)];
}

/* ---- room ---------------------------------------------------------------- */

#define GROW(tape, field, capacity, need)                                      \
    do {                                                                       \
        void *grown_ = ms_arena_grow(&(tape)->arena, (field), &(capacity),     \
                                     (need), sizeof *(field));                 \
        if (grown_ == NULL)                                                    \
            return ms_fail_nomem(fault);                                       \
        (field) = grown_;                                                      \
    } while (0)

static ms_err reserve(ms_tape *tape, uint32_t ops, uint32_t waits,
                      uint32_t rows, uint32_t releases, ms_fault *fault)
{
    ms_plan *plan = &tape->plan;
    uint32_t capacity = tape->ops_capacity;
    if (plan->n_ops + ops + 1 > capacity) {
        GROW(tape, plan->op, capacity, plan->n_ops + ops + 1);
        capacity = tape->ops_capacity;
        GROW(tape, plan->wait_at, capacity, plan->n_ops + ops + 1);
        capacity = tape->ops_capacity;
        GROW(tape, tape->level, capacity, plan->n_ops + ops + 1);
        tape->ops_capacity = capacity;
    }
    GROW(tape, plan->wait, tape->waits_capacity, tape->n_waits + waits + 1);
    GROW(tape, plan->row, tape->rows_capacity, plan->n_rows + rows + 1);
    GROW(tape, plan->release, tape->releases_capacity,
         tape->n_releases + releases + 1);
    return MS_OK;
}

ms_err ms_tape_sync(ms_tape *tape, uint32_t until, ms_fault *fault)
{
    ms_plan *plan = &tape->plan;
    GROW(tape, plan->sync, tape->syncs_capacity, plan->n_sync + 1);
    plan->sync[plan->n_sync++] = (struct ms_plan_sync){plan->n_ops, until, 0};
    return MS_OK;
}

/* ---- one span ------------------------------------------------------------ */

static void put_releases(const putter *it, uint32_t first, uint32_t end)
{
    ms_tape *tape = it->tape;
    for (uint32_t i = first; i < end; i++) {
        const ms_span_release *from =
            &it->spans->release[it->span->release + i];
        uint32_t r = find_row(it, from->row);
        ms_row *row = &tape->plan.row[r];
        row->streams =
            ((uint32_t)row->streams | from->streams) & MS_ALL_STREAMS;
        tape->plan.release[tape->n_releases++] = r;
    }
}

static void put_rows(const putter *it, uint32_t first, uint32_t end)
{
    ms_plan *plan = &it->tape->plan;
    for (uint32_t i = first; i < end; i++) {
        const ms_span_row *from = &it->spans->row[it->span->row + i];
        ms_row *row = &plan->row[plan->n_rows++];
        *row = from->row;
        row->op += it->first_op;
        if (from->cell.kind == MS_EARLIER_CELL)
            row->storage = storage_of(it, from->cell);
        else
            row->buffer = it->question->buffer[from->cell.index];
    }
}

static uint32_t op_of(const putter *it, const ms_span_op *from)
{
    const ms_graph *graph = it->tape->classes->graph;
    if (from->unit == MS_SPAN_ALL)
        return from->op.of;
    uint32_t unit = (uint32_t)((int32_t)it->question->base + from->unit);
    return from->op.of + (from->backward ? graph->backward_at[unit + 1]
                                         : graph->forward_at[unit]);
}

/* The offsets behind an op: those of the one that follows it. */
static void ends_of(const ms_span *span, const ms_span_op *op, uint32_t i,
                    uint32_t *wait, uint32_t *row, uint32_t *release)
{
    bool last = i + 1 == span->n_ops;
    *wait = last ? span->n_waits : op[1].wait_at;
    *row = last ? span->n_rows : op[1].op.alloc_at;
    *release = last ? span->n_releases : op[1].op.release_at;
}

static void put_op(const putter *it, uint32_t i)
{
    ms_tape *tape = it->tape;
    ms_plan *plan = &tape->plan;
    const ms_span_op *from = &it->spans->op[it->span->op + i];
    uint32_t wait_end, row_end, release_end;
    ms_plan_op *op = &plan->op[plan->n_ops];
    ends_of(it->span, from, i, &wait_end, &row_end, &release_end);
    *op = from->op;
    op->of = op_of(it, from);
    op->micro_batch = it->micro_batch;
    tape->level[plan->n_ops] =
        (ms_tape_level){from->taken_bytes, from->given_bytes, from->takes};
    op->alloc_at = plan->n_rows;
    op->release_at = tape->n_releases;
    plan->wait_at[plan->n_ops++] = tape->n_waits;
    for (uint32_t k = from->wait_at; k < wait_end; k++)
        plan->wait[tape->n_waits++] =
            find_op(it, it->spans->wait[it->span->wait + k]);
    put_rows(it, from->op.alloc_at, row_end);
    put_releases(it, from->op.release_at, release_end);
}

static ms_err put_lists(const putter *it, ms_fault *fault)
{
    ms_tape *tape = it->tape;
    ms_plan *plan = &tape->plan;
    const ms_span *span = it->span;
    GROW(tape, plan->transfers, tape->transfers_capacity,
         plan->n_transfers + span->n_transfers + 1);
    GROW(tape, plan->sync, tape->syncs_capacity,
         plan->n_sync + span->n_syncs + 1);
    for (uint32_t i = 0; i < span->n_transfers; i++) {
        struct ms_transfer *to = &plan->transfers[plan->n_transfers++];
        *to = it->spans->transfer[span->transfer + i];
        to->op += it->first_op;
    }
    GROW(tape, tape->late, tape->late_capacity,
         tape->n_late + span->n_late + 1);
    for (uint32_t i = 0; i < span->n_late; i++) {
        ms_span_late *to = &tape->late[tape->n_late++];
        *to = it->spans->late[span->late + i];
        to->op = to->op == MS_NONE ? it->first_op - 1 : to->op + it->first_op;
    }
    for (uint32_t i = 0; i < span->n_syncs; i++) {
        const ms_span_sync *from = &it->spans->sync[span->sync + i];
        plan->sync[plan->n_sync++] = (struct ms_plan_sync){
            from->op + it->first_op, find_op(it, from->until), 0};
    }
    return MS_OK;
}

static void set_tie(const putter *it, const ms_span_tie *tie, uint32_t found)
{
    ms_tape *tape = it->tape;
    ms_earlier to = tie->to;
    if (to.kind == MS_EARLIER_CELL)
        (tie->far ? tape->far : tape->ready)[to.column][storage_of(it, to)] =
            found;
    else if (to.kind == MS_EARLIER_SIDE)
        tape->side = found;
    else if (to.kind == MS_EARLIER_READER)
        buffer_of(it, to)->read =
            tie->by.kind == MS_EARLIER_START ? MS_NONE : found;
    else if (tie->far)
        buffer_of(it, to)->row = found;
    else
        buffer_of(it, to)->ready = found;
}

/* Where all are to ops of the span: most of cells, owner by owner. */
static void put_plain_ties(const putter *it, const ms_span_tie *tie)
{
    const ms_classes *classes = it->tape->classes;
    const ms_span_tie *end = tie + it->span->n_ties;
    const uint32_t *cell = NULL;
    int32_t owner = 0;
    for (; tie < end; tie++) {
        ms_earlier to = tie->to;
        if (to.kind != MS_EARLIER_CELL) {
            set_tie(it, tie, find_op(it, tie->by));
            continue;
        }
        if (cell == NULL || to.owner != owner)
            cell = classes->cell + classes->cell_at[ms_classes_owner(
                                       classes, it->question->base, to.owner)];
        owner = to.owner;
        it->tape->ready[to.column][cell[to.index]] =
            tie->by.kind == MS_EARLIER_CALL ? it->first_op + tie->by.index : 0;
    }
}

/* All are found before any is set: one may move to where another was. */
static ms_err put_ties(const putter *it, ms_fault *fault)
{
    ms_tape *tape = it->tape;
    const ms_span_tie *tie = it->spans->tie + it->span->tie;
    if (!it->span->moves) {
        put_plain_ties(it, tie);
        return MS_OK;
    }
    GROW(tape, tape->found, tape->found_capacity, it->span->n_ties + 1);
    for (uint32_t i = 0; i < it->span->n_ties; i++)
        tape->found[i] =
            tie[i].far ? find_row(it, tie[i].by) : find_op(it, tie[i].by);
    for (uint32_t i = 0; i < it->span->n_ties; i++)
        set_tie(it, &tie[i], tape->found[i]);
    return MS_OK;
}

static void put_state(const putter *it)
{
    ms_tape *tape = it->tape;
    const ms_span *span = it->span;
    if (span->compute != MS_NONE)
        tape->compute = it->first_op + span->compute;
    if (tape->side >= it->first_op && tape->side != MS_NONE)
        tape->side_stream = span->side;
    for (uint32_t i = 0; i < span->n_kinds; i++)
        tape->buffer[it->question->buffer[i]].kind =
            it->spans->kind[span->kind + i];
    for (uint32_t i = 0; i < span->n_packed; i++) {
        const ms_span_packed *from = &it->spans->packed[span->packed + i];
        tape->packed[storage_of(it, from->cell)] =
            it->question->buffer[from->buffer];
    }
}

ms_err ms_tape_put(ms_tape *tape, const ms_spans *spans, uint32_t span,
                   const ms_question *question, uint32_t micro_batch,
                   ms_fault *fault)
{
    putter it = {.tape = tape,
                 .spans = spans,
                 .span = &spans->span[span],
                 .question = question,
                 .micro_batch = micro_batch,
                 .first_op = tape->plan.n_ops,
                 .first_row = tape->plan.n_rows};
    MS_TRY(reserve(tape, it.span->n_ops, it.span->n_waits, it.span->n_rows,
                   it.span->n_releases, fault));
    MS_TRY(put_lists(&it, fault));
    put_releases(&it, 0, it.span->before);
    tape->level[it.first_op - 1].given_bytes += it.span->given_bytes;
    for (uint32_t i = 0; i < it.span->n_ops; i++)
        put_op(&it, i);
    MS_TRY(put_ties(&it, fault));
    put_state(&it);
    return MS_OK;
}

/* ---- a program ----------------------------------------------------------- */

static ms_err take_columns(ms_tape *tape, const ms_cells *cells,
                           uint32_t n_buffers)
{
    uint32_t n = cells->graph->n_storages;
    for (uint32_t k = 0; k < cells->n_columns; k++) {
        uint8_t column = cells->column[k];
        tape->ready[column] =
            ms_arena_take_raw(&tape->arena, n, sizeof(uint32_t));
        tape->far[column] =
            ms_arena_take_raw(&tape->arena, n, sizeof(uint32_t));
        if (tape->ready[column] == NULL || tape->far[column] == NULL)
            return MS_ENOMEM;
    }
    tape->packed = ms_arena_take_raw(&tape->arena, n, sizeof(uint32_t));
    tape->buffer = ms_arena_take(&tape->arena, n_buffers, sizeof *tape->buffer);
    return tape->packed != NULL && tape->buffer != NULL ? MS_OK : MS_ENOMEM;
}

/* What lies in other memories as the step starts. */
static void put_start(ms_tape *tape, const ms_row *far, uint32_t n_far)
{
    ms_plan *plan = &tape->plan;
    for (uint32_t i = 0; i < n_far; i++) {
        bool host = far[i].pool == MS_HOST_POOL;
        tape->far[host ? MS_CELLS_HOST : MS_CELLS_DISK][far[i].storage] = i;
        plan->row[plan->n_rows++] = far[i];
    }
    plan->op[0] = (ms_plan_op){.of = MS_NONE, .pass = MS_START};
    tape->level[0] = (ms_tape_level){0};
    plan->wait_at[0] = 0;
    plan->n_ops = 1;
}

ms_err ms_tape_begin(ms_tape *tape, const ms_cells *cells, const ms_row *far,
                     uint32_t n_far, const ms_program *program, ms_fault *fault)
{
    ms_arena arena = tape->arena;
    const ms_tape last = *tape; /* whose sizes this one may have */
    ms_arena_reset(&arena);
    *tape = (ms_tape){.arena = arena,
                      .classes = cells->classes,
                      .side = MS_NONE,
                      .limit = {MS_NONE, MS_NONE},
                      .plan = {.graph = cells->graph,
                               .n_ranks = 1,
                               .buffers = program->buffers,
                               .saved_in = program->saved_in,
                               .n_micro_batches = program->n_micro_batches}};
    if (take_columns(tape, cells, program->n_buffers) != MS_OK)
        return ms_fail_nomem(fault);
    MS_TRY(reserve(tape, 1 + last.plan.n_ops, last.n_waits,
                   n_far + last.plan.n_rows, last.n_releases, fault));
    put_start(tape, far, n_far);
    return MS_OK;
}

ms_err ms_tape_end(ms_tape *tape, ms_fault *fault)
{
    ms_plan *plan = &tape->plan;
    MS_TRY(reserve(tape, 0, 0, 0, 0, fault));
    plan->op[plan->n_ops].alloc_at = plan->n_rows;
    plan->op[plan->n_ops].release_at = tape->n_releases;
    plan->wait_at[plan->n_ops] = tape->n_waits;
    return MS_OK;
}

/* ---- known tapes --------------------------------------------------------- */

ms_err ms_tape_copy_list(ms_arena *arena, const void *list, size_t n,
                         size_t size, void *copy, ms_fault *fault)
{
    void *to = ms_arena_take_raw(arena, n + 1, size);
    if (to == NULL)
        return ms_fail_nomem(fault);
    if (n > 0)
        memcpy(to, list, n * size);
    memcpy(copy, &to, sizeof to);
    return MS_OK;
}

#define COPY(field, n)                                                         \
    MS_TRY(ms_tape_copy_list(arena, tape->field, (n), sizeof *tape->field,     \
                             &copy->field, fault))

ms_err ms_tape_copy(const ms_tape *tape, ms_arena *arena, ms_tape *copy,
                    ms_fault *fault)
{
    const ms_plan *plan = &tape->plan;
    *copy = (ms_tape){.classes = tape->classes,
                      .plan = *plan,
                      .n_late = tape->n_late,
                      .n_waits = tape->n_waits,
                      .n_releases = tape->n_releases,
                      .ops_capacity = plan->n_ops + 1,
                      .waits_capacity = tape->n_waits + 1,
                      .rows_capacity = plan->n_rows + 1,
                      .releases_capacity = tape->n_releases + 1};
    COPY(plan.op, plan->n_ops);
    COPY(plan.wait_at, plan->n_ops);
    COPY(level, plan->n_ops);
    COPY(plan.wait, tape->n_waits);
    COPY(plan.row, plan->n_rows);
    COPY(plan.release, tape->n_releases);
    COPY(plan.sync, plan->n_sync);
    COPY(plan.transfers, plan->n_transfers);
    COPY(late, tape->n_late);
    return MS_OK;
}

ms_tape_place ms_tape_renumber_start(ms_tape *tape, const ms_row *far,
                                     uint32_t n_far)
{
    for (uint32_t i = 0; i < n_far; i++)
        tape->plan.row[i].bytes = far[i].bytes;
    tape->level[0] = (ms_tape_level){0};
    return (ms_tape_place){.op = 1, .row = n_far};
}

void ms_tape_renumber(ms_tape *tape, const ms_spans *spans, uint32_t span,
                      ms_tape_place *at)
{
    const ms_span *it = &spans->span[span];
    const ms_span_op *from = spans->op + it->op;
    ms_plan *plan = &tape->plan;
    tape->level[at->op - 1].given_bytes += it->given_bytes;
    for (uint32_t i = 0; i < it->n_ops; i++) {
        plan->op[at->op + i].ns = from[i].op.ns;
        tape->level[at->op + i] = (ms_tape_level){
            from[i].taken_bytes, from[i].given_bytes, from[i].takes};
    }
    for (uint32_t i = 0; i < it->n_rows; i++)
        plan->row[at->row + i].bytes = spans->row[it->row + i].row.bytes;
    for (uint32_t i = 0; i < it->n_transfers; i++)
        plan->transfers[at->transfer + i].bytes =
            spans->transfer[it->transfer + i].bytes;
    for (uint32_t i = 0; i < it->n_late; i++)
        tape->late[at->late + i].bytes = spans->late[it->late + i].bytes;
    at->op += it->n_ops;
    at->row += it->n_rows;
    at->transfer += it->n_transfers;
    at->late += it->n_late;
}

void ms_tape_close(ms_tape *tape)
{
    ms_arena_free(&tape->arena);
}
