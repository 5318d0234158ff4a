/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The books: columns of the plan as they grow, rows of cells, references. */
#include "sim/expand/books.h"
#include "sim/plan.h"
#include "sim/program.h"

#include <assert.h>
#include <string.h>

#define GROW(books, field, capacity, need)                                     \
    do {                                                                       \
        void *grown_ = ms_arena_grow((books)->arena, (field), (capacity),      \
                                     (need), sizeof *(field));                 \
        if (!grown_)                                                           \
            return ms_fail_nomem((books)->fault);                              \
        (field) = grown_;                                                      \
    } while (0)

/* All columns grow from the same capacity by the same need, so that one number
 * says how long each of them is. */
static ms_err grow_ops(ms_books *books, uint32_t need)
{
    ms_plan *plan = books->plan;
    uint32_t was = books->ops_capacity, c = was;
    GROW(books, plan->op, &c, need);
    if (books->streams) {
        c = was;
        GROW(books, plan->wait_at, &c, need);
    }
    if (books->opts->uses) {
        c = was;
        GROW(books, plan->use_at, &c, need);
    }
    books->ops_capacity = c;
    return MS_OK;
}

static ms_err grow_rows(ms_books *books, uint32_t need)
{
    ms_plan *plan = books->plan;
    uint32_t was = books->rows_capacity, c = was;
    GROW(books, plan->row, &c, need);
    c = was;
    GROW(books, plan->release, &c, need); /* a row is released at most once */
    if (books->streams) {
        c = was;
        GROW(books, books->ready_op, &c, need);
    }
    books->rows_capacity = c;
    return MS_OK;
}

ms_err ms_books_grow(ms_books *books, uint32_t ops, uint32_t rows,
                     uint32_t reads)
{
    ms_plan *plan = books->plan;
    uint32_t touched = reads + rows;
    if (plan->n_ops + ops >= books->ops_capacity)
        MS_TRY(grow_ops(books, plan->n_ops + ops + 1));
    if (plan->n_rows + rows > books->rows_capacity)
        MS_TRY(grow_rows(books, plan->n_rows + rows));
    if (books->streams && books->n_wait + reads > books->wait_capacity)
        GROW(books, plan->wait, &books->wait_capacity, books->n_wait + reads);
    if (books->opts->uses && books->n_use + touched > books->use_capacity)
        GROW(books, plan->use, &books->use_capacity, books->n_use + touched);
    return MS_OK;
}

bool ms_books_has(const ms_program *program, uint8_t verb)
{
    for (uint32_t i = 0; i < program->n_calls; i++)
        if (program->calls[i].verb == verb)
            return true;
    return false;
}

bool ms_books_graph_streams(const ms_graph *graph)
{
    for (uint32_t o = 0; o < graph->n_ops; o++)
        if (graph->op_stream[o] != MS_STREAM_COMPUTE)
            return true;
    return false;
}

bool ms_books_names_made(const ms_graph *graph, const ms_program *program,
                         const ms_call *call)
{
    if (call->set >= program->n_sets)
        return false;
    for (uint32_t i = program->set_at[call->set];
         i < program->set_at[call->set + 1]; i++)
        if (program->set_item[i] >= graph->n_persistent)
            return true;
    return false;
}

static void ask_for_move(const ms_graph *graph, const ms_program *program,
                         const ms_call *call, ms_books_columns *asked)
{
    asked->streams = asked->host = true;
    asked->disk |= call->move.to == MS_NVME;
    if (call->move.to == MS_SHARD && !asked->parts)
        asked->parts = ms_books_names_made(graph, program, call);
}

ms_books_columns ms_books_ask(const ms_graph *graph, bool graph_streams,
                              const ms_program *program)
{
    bool homes = graph->storage_pool != NULL;
    bool shares = graph->storage_shard_bytes != NULL;
    ms_books_columns asked = {
        .host = homes || program->hooks.used, .disk = homes, .parts = shares};
    asked.streams = graph_streams || asked.host || shares ||
                    program->n_buffers > 0 || program->n_tasks > 0;
    for (uint32_t i = 0; i < program->n_calls; i++)
        switch ((ms_verb)program->calls[i].verb) {
        case MS_MOVE:
            ask_for_move(graph, program, &program->calls[i], &asked);
            break;
        case MS_GATHER:
        case MS_REDUCE:
        case MS_SEND_SET:
            asked.streams = true;
            break;
        default:
            break;
        }
    return asked;
}

/* A column of n rows, none yet. */
static ms_err take_rows(ms_books *books, uint32_t n, uint32_t **rows)
{
    *rows = ms_arena_take_raw(books->arena, n, sizeof(uint32_t));
    if (!*rows)
        return ms_fail_nomem(books->fault);
    memset(*rows, 0xff, n * sizeof(uint32_t));
    return MS_OK;
}

static ms_err take_cells(ms_books *books, bool sets)
{
    const ms_graph *graph = books->graph;
    ms_arena *arena = books->arena;
    books->state = ms_arena_take(arena, books->n_cells, 1);
    if (sets)
        books->kept = ms_arena_take(arena, graph->n_storages, sizeof(uint32_t));
    if (sets)
        books->held = ms_arena_take(arena, graph->n_storages, sizeof(uint32_t));
    if (!books->state || (sets && (!books->kept || !books->held)))
        return ms_fail_nomem(books->fault);
    return take_rows(books, books->n_cells, &books->row);
}

void ms_books_open_set(ms_books *books, const ms_program *program, uint32_t set)
{
    books->holds = set != MS_ALL && set != MS_NOTHING;
    if (!books->holds)
        return;
    for (uint32_t i = program->set_at[set]; i < program->set_at[set + 1]; i++)
        books->held[program->set_item[i]] = books->run;
}

void ms_books_close_set(ms_books *books, const ms_books_at *at,
                        const ms_program *program, uint32_t set)
{
    if (!books->holds)
        return;
    for (uint32_t i = program->set_at[set]; i < program->set_at[set + 1]; i++) {
        uint32_t s = program->set_item[i];
        if (books->held[s] != MS_NONE)
            continue;       /* it was there before */
        books->held[s] = 0; /* of no RUN: these count from 1 */
        ms_books_unhold(books, ms_books_cell(books, at, s));
    }
    books->holds = false;
}

void ms_books_hold_set(ms_books *books, const ms_books_at *at,
                       const ms_program *program, uint32_t set, bool saves)
{
    uint32_t backward = books->graph->backward_at[books->graph->n_units];
    if (set == MS_ALL || set == MS_NOTHING)
        return;
    for (uint32_t i = program->set_at[set]; i < program->set_at[set + 1]; i++) {
        uint32_t c = ms_books_cell(books, at, program->set_item[i]);
        uint32_t r = ms_books_found(books, c);
        if (r != MS_NONE || ms_books_in(books->packed, c) != MS_NONE)
            books->state[c] += MS_REF_HOLD;
        if (r == MS_NONE)
            continue;
        ms_row *row = &books->plan->row[r];
        if (books->graph->storage_maker[row->storage] >= backward)
            continue;
        row->saved |= saves;
        if (row->category == MS_TEMPORARIES)
            row->category = books->graph->nodes
                                ? books->graph->storage_category[row->storage]
                                : MS_ACTIVATIONS;
    }
}

static ms_err take_last(ms_books *books, uint32_t ranks)
{
    MS_TRY(take_rows(books, ranks, &books->last_compute));
    MS_TRY(take_rows(books, ranks, &books->last_side));
    return take_rows(books, 2 * ranks, &books->let_go);
}

ms_err ms_books_open(ms_books *books, const ms_program *program)
{
    const ms_graph *graph = books->graph;
    ms_program found = *program;
    MS_TRY(ms_stage_find(graph, &found, books->arena, books->fault));
    books->stage_holds = found.holds;
    MS_TRY(ms_frames_lay(graph, &found, books->arena, &books->frames,
                         books->fault));
    uint64_t cells = program->n_frames * books->frames.width +
                     (uint64_t)program->n_ranks * graph->n_persistent;
    if (cells >= MS_NONE)
        return ms_fail(books->fault, MS_EINPUT, graph->name,
                       "use fewer frames or ranks",
                       "the program has too many frames x ranks");
    books->n_cells = (uint32_t)cells;
    books->n_buffers = program->n_buffers;
    books->groups = books->opts->groups;
    books->n_groups = MS_N_GROUP_ROLES;
    if (program->n_groups > 0) {
        books->groups = program->groups;
        books->n_groups = program->n_groups;
    }
    MS_TRY(take_cells(books, program->n_sets > 0));
    ms_books_columns asked =
        ms_books_ask(graph, ms_books_graph_streams(graph), program);
    books->streams = asked.streams;
    if (asked.streams)
        MS_TRY(take_last(books, program->n_ranks));
    if (asked.host)
        MS_TRY(take_rows(books, books->n_cells, &books->host_row));
    if (asked.disk)
        MS_TRY(take_rows(books, books->n_cells, &books->nvme_row));
    if (asked.parts)
        MS_TRY(take_rows(books, books->n_cells, &books->shard_row));
    if (program->n_buffers > 0) {
        MS_TRY(take_rows(books, books->n_cells, &books->packed));
        uint64_t n = (uint64_t)program->n_buffers * program->n_ranks;
        if (n > UINT32_MAX)
            return ms_fail_nomem(books->fault);
        MS_TRY(take_rows(books, (uint32_t)n, &books->buffer_row));
        MS_TRY(take_rows(books, (uint32_t)n, &books->buffer_read));
    }
    books->reads = books->streams || books->opts->uses;
    books->staged = program->n_stages > 0 ? program : NULL;
    return MS_OK;
}

ms_err ms_books_close(ms_books *books)
{
    ms_plan *plan = books->plan;
    MS_TRY(ms_books_reserve(books, 0, 0, 0));
    for (uint32_t rank = 0; rank < plan->n_ranks; rank++)
        ms_diskbuffers_end(books, (uint16_t)rank);
    plan->op[plan->n_ops].alloc_at = plan->n_rows;
    plan->op[plan->n_ops].release_at = books->n_release;
    if (books->streams)
        plan->wait_at[plan->n_ops] = books->n_wait;
    if (books->opts->uses)
        plan->use_at[plan->n_ops] = books->n_use;
    return plan->n_ranks > 1 ? ms_rankdrops_settle(books) : MS_OK;
}

void ms_books_drop(ms_books *books)
{
    void *const columns[] = {books->row,       books->host_row, books->nvme_row,
                             books->shard_row, books->packed,   books->state,
                             books->ready_op,  books->stamps,   books->kept,
                             books->held};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        ms_arena_drop(books->arena, columns[i]);
}

ms_err ms_books_sync(ms_books *books, const ms_books_at *at, uint32_t until)
{
    ms_plan *plan = books->plan;
    struct ms_plan_sync *sync =
        ms_arena_grow(books->arena, plan->sync, &books->syncs_capacity,
                      plan->n_sync + 1, sizeof *sync);
    if (!sync)
        return ms_fail_nomem(books->fault);
    plan->sync = sync;
    sync[plan->n_sync++] = (struct ms_plan_sync){plan->n_ops, until, at->rank};
    return MS_OK;
}

ms_books_at ms_books_at_of(const ms_books *books, uint16_t rank, uint16_t frame,
                           uint32_t micro_batch)
{
    const ms_graph *graph = books->graph;
    uint32_t persistent = graph->n_persistent;
    /* The persistent cells of all ranks, then frame after frame. */
    uint64_t frames =
        (books->plan->n_ranks - 1u) * persistent + frame * books->frames.width;
    return (ms_books_at){.persistent = rank * persistent,
                         .frame =
                             (uint32_t)(frames + books->frames.offset[rank]),
                         .buffers = rank * books->n_buffers,
                         .micro_batch = micro_batch,
                         .rank = rank};
}

/* Is it a cell of what a micro-batch makes? */
static bool is_of_frame(const ms_books *books, uint32_t cell)
{
    return cell >= books->plan->n_ranks * books->graph->n_persistent;
}

void ms_books_lose(ms_books *books, uint32_t cell)
{
    if (ms_books_in(books->packed, cell) != MS_NONE && is_of_frame(books, cell))
        books->packed[cell] = MS_NONE;
    if (books->row[cell] != MS_NONE) {
        ms_books_give(books, books->row[cell]);
        books->row[cell] = MS_NONE;
    }
    uint32_t *const far[] = {books->shard_row, books->host_row,
                             books->nvme_row};
    for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
        if (ms_books_in(far[i], cell) == MS_NONE)
            continue;
        ms_books_give(books, far[i][cell]);
        far[i][cell] = MS_NONE;
    }
}

void ms_books_made(ms_books *books, uint32_t first)
{
    ms_plan *plan = books->plan;
    for (uint32_t r = first; r < plan->n_rows; r++)
        ms_books_made_row(books, r);
}

/* A wait that is listed twice changes nothing, so that only the last one is
 * compared. */
static void note_wait(ms_books *books, uint32_t writer)
{
    ms_plan *plan = books->plan;
    if (books->n_wait == plan->wait_at[plan->n_ops - 1] ||
        plan->wait[books->n_wait - 1] != writer)
        plan->wait[books->n_wait++] = writer;
}

/* A process notes a stream (record_stream) for its own blocks only, and not
 * that of the graph's own collectives: the compute stream has waited for these
 * before what they read is let go (torch's wait_tensor, Megatron's
 * handle.wait). */
static bool is_noted(const ms_books *books, const ms_row *row,
                     const ms_plan_op *reader)
{
    const ms_plan *plan = books->plan;
    if (reader->of != MS_NONE && ms_books_meets(books, reader->of))
        return false;
    return plan->n_ranks == 1 || plan->op[row->op].rank == reader->rank;
}

void ms_books_read(ms_books *books, uint32_t row)
{
    ms_plan *plan = books->plan;
    uint32_t op = plan->n_ops - 1;
    if (books->opts->uses)
        plan->use[books->n_use++] = row;
    if (books->streams) {
        uint32_t writer = books->ready_op[row];
        const ms_plan_op *it = &plan->op[writer], *now = &plan->op[op];
        ms_row *read = &plan->row[row];
        if (is_noted(books, read, now))
            read->streams =
                (read->streams | 1u << now->stream) & MS_ALL_STREAMS;
        /* Streams are FIFO: an op waits for other streams only. */
        if ((it->stream != now->stream || it->rank != now->rank) &&
            it->pass != MS_START)
            note_wait(books, writer);
    }
}
