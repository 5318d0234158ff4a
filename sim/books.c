/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The books: columns of the plan as they grow, rows of cells, references. */
#include "sim/books.h"

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

static ms_err grow_ops(ms_books *books, uint32_t need)
{
    ms_plan *plan = books->plan;
    uint32_t was = books->ops_capacity, c = was;

    GROW(books, plan->op_of, &c, need);
    c = was;
    GROW(books, plan->op_pass, &c, need);
    c = was;
    GROW(books, plan->op_stream, &c, need);
    c = was;
    GROW(books, plan->op_rank, &c, need);
    c = was;
    GROW(books, plan->op_micro_batch, &c, need);
    c = was;
    GROW(books, plan->op_ns, &c, need);
    c = was;
    GROW(books, plan->alloc_at, &c, need);
    c = was;
    GROW(books, plan->release_at, &c, need);
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

    GROW(books, plan->row_bytes, &c, need);
    c = was;
    GROW(books, plan->row_storage, &c, need);
    c = was;
    GROW(books, plan->row_op, &c, need);
    c = was;
    GROW(books, plan->row_category, &c, need);
    c = was;
    GROW(books, plan->row_pool, &c, need);
    c = was;
    GROW(books, plan->row_saved, &c, need);
    c = was;
    GROW(books, plan->release, &c, need); /* a row is released at most once */
    if (books->streams) {
        c = was;
        GROW(books, books->ready_op, &c, need);
    }
    books->rows_capacity = c;
    return MS_OK;
}

ms_err ms_books_reserve(ms_books *books, uint32_t ops, uint32_t rows,
                        uint32_t reads)
{
    ms_plan *plan = books->plan;
    uint32_t touched = reads + rows;

    /* One op more than asked: the closing offsets of the CSR columns. */
    if (plan->n_ops + ops + 1 > books->ops_capacity)
        MS_TRY(grow_ops(books, plan->n_ops + ops + 1));
    if (plan->n_rows + rows > books->rows_capacity)
        MS_TRY(grow_rows(books, plan->n_rows + rows));
    if (books->streams && books->n_wait + reads > books->wait_capacity)
        GROW(books, plan->wait, &books->wait_capacity, books->n_wait + reads);
    if (books->opts->uses && books->n_use + touched > books->use_capacity)
        GROW(books, plan->use, &books->use_capacity, books->n_use + touched);
    return MS_OK;
}

static bool program_moves(const ms_program *program)
{
    for (uint32_t i = 0; i < program->n_calls; i++)
        if (program->calls[i].verb == MS_MOVE)
            return true;
    return false;
}

static bool graph_streams(const ms_graph *graph)
{
    for (uint32_t o = 0; o < graph->n_ops; o++)
        if (graph->op_stream[o] != MS_STREAM_COMPUTE)
            return true;
    return false;
}

static void fill_first_state(ms_books *books)
{
    const ms_graph *graph = books->graph;

    for (uint32_t s = 0; s < graph->n_storages; s++) {
        uint8_t state = MS_REF_MADE;
        if (graph->storage_local_end[s] != MS_NONE)
            state |= MS_REF_LOCAL;
        if (graph->storage_saved_end[s] != MS_NONE)
            state |= MS_REF_SAVED;
        if (s < graph->n_persistent)
            state |= MS_REF_HOLD;
        books->first_state[s] = state;
    }
    for (uint32_t i = 0; i < graph->n_kept; i++)
        books->first_state[graph->kept[i]] += MS_REF_HOLD;
}

ms_err ms_books_open(ms_books *books, const ms_program *program)
{
    const ms_graph *graph = books->graph;
    uint64_t frames = (uint64_t)program->n_frames * program->n_ranks;
    uint64_t cells = frames * (graph->n_storages - graph->n_persistent) +
                     (uint64_t)program->n_ranks * graph->n_persistent;
    ms_arena *arena = books->arena;

    if (cells >= MS_NONE)
        return ms_fail(books->fault, MS_EINPUT, graph->name,
                       "use fewer frames or ranks",
                       "the program has too many frames x ranks");
    books->n_cells = (uint32_t)cells;
    books->n_frames = program->n_frames;
    books->row = ms_arena_take_raw(arena, books->n_cells, sizeof(uint32_t));
    books->state = ms_arena_take(arena, books->n_cells, 1);
    books->first_state = ms_arena_take_raw(arena, graph->n_storages, 1);
    books->stamp = ms_arena_take(arena, graph->n_storages, sizeof(uint32_t));
    books->kept = ms_arena_take(arena, graph->n_storages, sizeof(uint32_t));
    books->op_stamp = ms_arena_take(arena, graph->n_ops, sizeof(uint32_t));
    if (!books->row || !books->state || !books->first_state || !books->stamp ||
        !books->kept || !books->op_stamp)
        return ms_fail_nomem(books->fault);
    memset(books->row, 0xff, books->n_cells * sizeof(uint32_t));
    books->streams = graph_streams(graph);
    if (program_moves(program)) {
        books->streams = true;
        books->host_row =
            ms_arena_take_raw(arena, books->n_cells, sizeof(uint32_t));
        if (!books->host_row)
            return ms_fail_nomem(books->fault);
        memset(books->host_row, 0xff, books->n_cells * sizeof(uint32_t));
    }
    fill_first_state(books);
    return MS_OK;
}

ms_err ms_books_close(ms_books *books)
{
    ms_plan *plan = books->plan;

    MS_TRY(ms_books_reserve(books, 0, 0, 0));
    plan->alloc_at[plan->n_ops] = plan->n_rows;
    plan->release_at[plan->n_ops] = books->n_release;
    if (books->streams)
        plan->wait_at[plan->n_ops] = books->n_wait;
    if (books->opts->uses)
        plan->use_at[plan->n_ops] = books->n_use;
    return MS_OK;
}

ms_books_at ms_books_at_of(const ms_books *books, uint8_t rank, uint16_t frame,
                           uint32_t micro_batch)
{
    const ms_graph *graph = books->graph;
    uint32_t persistent = graph->n_persistent;
    uint32_t in_frame = graph->n_storages - persistent;
    uint32_t block = persistent + books->n_frames * in_frame;

    /* A rank's cells: its persistent ones, then frame after frame. */
    return (ms_books_at){.persistent = rank * block,
                         .frame = rank * block + frame * in_frame,
                         .micro_batch = micro_batch,
                         .rank = rank};
}

uint32_t ms_books_issue(ms_books *books, const ms_books_at *at, uint32_t op,
                        uint8_t pass, uint8_t stream, uint64_t ns)
{
    ms_plan *plan = books->plan;
    uint32_t i = plan->n_ops++;

    plan->op_of[i] = op;
    plan->op_pass[i] = pass;
    plan->op_stream[i] = stream;
    plan->op_rank[i] = at->rank;
    plan->op_micro_batch[i] = at->micro_batch;
    plan->op_ns[i] = ns;
    plan->alloc_at[i] = plan->n_rows;
    plan->release_at[i] = books->n_release;
    if (books->streams)
        plan->wait_at[i] = books->n_wait;
    if (books->opts->uses)
        plan->use_at[i] = books->n_use;
    return i;
}

uint32_t ms_books_take(ms_books *books, uint32_t storage, uint8_t category,
                       uint8_t pool, bool saved)
{
    ms_plan *plan = books->plan;
    uint32_t r = plan->n_rows++;

    plan->row_bytes[r] = books->graph->storage_bytes[storage];
    plan->row_storage[r] = storage;
    plan->row_op[r] = plan->n_ops - 1;
    plan->row_category[r] = category;
    plan->row_pool[r] = pool;
    plan->row_saved[r] = saved;
    if (books->streams)
        books->ready_op[r] = plan->n_ops - 1;
    if (books->opts->uses)
        plan->use[books->n_use++] = r;
    return r;
}

void ms_books_end(ms_books *books, uint32_t cell, uint8_t bits)
{
    uint8_t state = books->state[cell];

    if (!(state & bits))
        return;
    state = bits == MS_REF_HOLD ? (uint8_t)(state - MS_REF_HOLD)
                                : (uint8_t)(state & ~bits);
    books->state[cell] = state;
    if (state & MS_REF_ANY)
        return;
    if (books->row[cell] != MS_NONE) {
        ms_books_give(books, books->row[cell]);
        books->row[cell] = MS_NONE;
    } else if (books->host_row && books->host_row[cell] != MS_NONE) {
        ms_books_give(books, books->host_row[cell]);
        books->host_row[cell] = MS_NONE;
    }
}

void ms_books_read(ms_books *books, uint32_t row)
{
    ms_plan *plan = books->plan;
    uint32_t op = plan->n_ops - 1;

    if (books->opts->uses)
        plan->use[books->n_use++] = row;
    if (books->streams) {
        uint32_t writer = books->ready_op[row];
        if (plan->op_stream[writer] != plan->op_stream[op] ||
            plan->op_rank[writer] != plan->op_rank[op])
            plan->wait[books->n_wait++] = writer;
    }
}
