/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/fold/cells/cells.h"

#include "sim/fold/cells/rowkind.h"
#include "sim/graph.h"

#include <assert.h>
#include <string.h>

/* ---- into the books ------------------------------------------------------ */

void ms_cells_empty(ms_cells *cells)
{
    ms_books *books = &cells->books;
    size_t column = books->n_cells * sizeof *books->row;
    for (uint32_t i = 0; i < cells->n_columns; i++)
        memset(ms_cells_rows(cells, cells->column[i]), 0xff, column);
    memset(books->state, 0, books->n_cells);
    memset(books->held, 0, cells->graph->n_storages * sizeof *books->held);
    if (books->packed != NULL) {
        memset(books->packed, 0xff, column);
        memset(books->buffer_row, 0xff, books->n_buffers * sizeof(uint32_t));
        memset(books->buffer_read, 0xff, books->n_buffers * sizeof(uint32_t));
    }
    books->holds = false;
    books->n_asked = 0;
    books->disk_buffers = NULL;
    books->replays[0] = (ms_books_replay){.state = MS_NONE};
}

static ms_err note(ms_earlier **list, uint32_t *capacity, uint32_t at,
                   ms_earlier who, ms_arena *arena, ms_fault *fault)
{
    ms_earlier *grown =
        ms_arena_grow(arena, *list, capacity, at + 1, sizeof *grown);
    if (grown == NULL)
        return ms_fail_nomem(fault);
    *list = grown;
    grown[at] = who;
    return MS_OK;
}

ms_err ms_cells_put_op(ms_cells *cells, ms_earlier who, uint8_t stream,
                       uint32_t *op, ms_fault *fault)
{
    ms_books_at at = ms_books_at_of(&cells->books, 0, 0, 0);
    *op = cells->plan.n_ops;
    if (ms_books_reserve(&cells->books, 1, 0, 0) != MS_OK)
        return ms_fail_nomem(fault);
    ms_books_issue(&cells->books, &at, MS_NONE, MS_COPY, stream, 0);
    return note(&cells->op, &cells->ops_capacity, *op, who, &cells->arena,
                fault);
}

/* Op 0 is the start, which has made what the compute stream has; with several
 * streams op 1 + s stands for whoever has made what stream s has. */
ms_err ms_cells_begin(ms_cells *cells, ms_fault *fault)
{
    ms_plan *plan = &cells->plan;
    ms_books_at at = ms_books_at_of(&cells->books, 0, 0, 0);
    uint32_t op;
    plan->n_ops = plan->n_rows = plan->n_sync = plan->n_transfers = 0;
    cells->books.n_release = cells->books.n_wait = 0;
    if (ms_books_reserve(&cells->books, 1, 0, 0) != MS_OK)
        return ms_fail_nomem(fault);
    ms_books_issue(&cells->books, &at, MS_NONE, MS_START, MS_STREAM_COMPUTE, 0);
    for (uint8_t s = 0; cells->books.streams && s < MS_N_STREAMS; s++)
        MS_TRY(ms_cells_put_op(cells, (ms_earlier){MS_EARLIER_START, 0, 0, 0},
                               s, &op, fault));
    return MS_OK;
}

static ms_err note_category(ms_cells *cells, uint32_t row, uint8_t category,
                            ms_fault *fault)
{
    uint8_t *grown = ms_arena_grow(&cells->arena, cells->category,
                                   &cells->categories_capacity, row + 1, 1);
    if (grown == NULL)
        return ms_fail_nomem(fault);
    cells->category = grown;
    grown[row] = category;
    return MS_OK;
}

/* storage MS_NONE: of a buffer. */
static ms_err put_row(ms_cells *cells, uint32_t storage, uint32_t id,
                      ms_earlier who, uint32_t *row, ms_fault *fault)
{
    ms_books *books = &cells->books;
    ms_plan *plan = &cells->plan;
    ms_rowkind kind = ms_rowkind_of(cells, id);
    ms_rowkind_whose size = (ms_rowkind_whose)kind.size;
    uint32_t writer = 0;
    if (kind.writer != MS_ROWKIND_AT_START)
        MS_TRY(ms_cells_put_op(cells, who, kind.writer, &writer, fault));
    if (ms_books_reserve(books, 0, 1, 0) != MS_OK)
        return ms_fail_nomem(fault);
    *row = plan->n_rows++;
    plan->row[*row] =
        (ms_row){.bytes = size == MS_ROWKIND_OTHER
                              ? kind.bytes
                              : ms_rowkind_bytes(cells, size, storage),
                 .storage = storage,
                 .op = kind.maker == MS_STREAM_COMPUTE ? 0 : 1u + kind.maker,
                 .category = kind.category,
                 .pool = kind.pool,
                 .streams = (uint32_t)kind.streams & MS_ALL_STREAMS,
                 .home = kind.home & 3u,
                 .waited = kind.waited};
    if (books->streams)
        books->ready_op[*row] = writer;
    else
        MS_TRY(note_category(cells, *row, kind.category, fault));
    return note(&cells->row, &cells->rows_capacity, *row, who, &cells->arena,
                fault);
}

/* The ops of a unit that the replay under way will run; n = 0: none. */
static void put_wanted(ms_cells *cells, uint32_t unit, const uint32_t *words,
                       uint32_t n)
{
    const ms_graph *graph = cells->graph;
    uint32_t first = graph->forward_at[unit], end = graph->forward_at[unit + 1];
    for (uint32_t op = first; op < end; op++)
        cells->books.op_stamp[op] =
            n > 0 && words[(op - first) / 32] >> (op - first) % 32 & 1u
                ? cells->books.replays[0].wanted
                : 0;
}

static ms_err put_storage(ms_cells *cells, uint32_t storage,
                          const uint32_t *words, ms_earlier who,
                          ms_fault *fault)
{
    ms_books *books = &cells->books;
    const ms_books_replay *replay = &books->replays[0];
    books->state[storage] = (uint8_t)words[0];
    if (replay->open && words[0] & MS_CELLS_REMADE)
        books->stamp[storage] = replay->tick;
    else if (replay->open)
        books->stamp[storage] =
            cells->wants && words[0] & MS_CELLS_WANTED ? replay->wanted : 0;
    for (uint32_t k = 0; k < cells->n_columns; k++) {
        uint32_t kind = k == 0 ? MS_CELLS_KIND(words[0]) : words[k];
        who.column = cells->column[k];
        if (kind > 0)
            MS_TRY(put_row(cells, storage, kind, who,
                           &ms_cells_rows(cells, who.column)[storage], fault));
    }
    return MS_OK;
}

ms_err ms_cells_put(ms_cells *cells, uint32_t owner, uint32_t base,
                    const uint32_t *words, uint32_t n, ms_fault *fault)
{
    const ms_classes *classes = cells->classes;
    uint32_t first = classes->cell_at[owner];
    uint32_t storages = classes->cell_at[owner + 1] - first;
    uint32_t wanted = storages * cells->n_columns;
    ms_earlier who = {MS_EARLIER_CELL, 0, ms_classes_seen(classes, base, owner),
                      0};
    for (uint32_t i = 0; i < storages; i++) {
        who.index = i;
        MS_TRY(put_storage(cells, classes->cell[first + i],
                           words + (size_t)i * cells->n_columns, who, fault));
    }
    if (cells->books.replays[0].open && owner < classes->shared)
        put_wanted(cells, owner, words + wanted, n - wanted);
    return MS_OK;
}

ms_err ms_cells_put_buffer(ms_cells *cells, uint32_t buffer, uint32_t kind,
                           ms_earlier who, ms_fault *fault)
{
    uint32_t *row = &cells->books.buffer_row[buffer];
    if (kind == 0)
        return MS_OK;
    MS_TRY(put_row(cells, MS_NONE, kind, who, row, fault));
    cells->plan.row[*row].buffer = buffer;
    return MS_OK;
}

ms_err ms_cells_end(ms_cells *cells, ms_fault *fault)
{
    uint32_t op;
    if (cells->books.streams)
        MS_TRY(ms_cells_put_op(cells, (ms_earlier){MS_EARLIER_COMPUTE, 0, 0, 0},
                               MS_STREAM_COMPUTE, &op, fault));
    cells->first_op = cells->plan.n_ops;
    cells->first_row = cells->plan.n_rows;
    return MS_OK;
}

/* ---- out of the books ---------------------------------------------------- */

/* The words of put_wanted: none where the replay runs nothing of the unit. */
static uint32_t *read_wanted(ms_cells *cells, uint32_t unit, uint32_t *words)
{
    const ms_graph *graph = cells->graph;
    const ms_books *books = &cells->books;
    uint32_t first = graph->forward_at[unit], end = graph->forward_at[unit + 1];
    uint32_t n = (end - first + 31) / 32;
    bool any = false;
    memset(words, 0, n * sizeof *words);
    for (uint32_t op = first; op < end; op++) {
        if (books->op_stamp[op] != books->replays[0].wanted)
            continue;
        words[(op - first) / 32] |= 1u << (op - first) % 32;
        any = true;
    }
    return any ? words + n : words;
}

ms_err ms_cells_read(ms_cells *cells, uint32_t owner, uint32_t *n,
                     ms_fault *fault)
{
    const ms_classes *classes = cells->classes;
    const ms_books *books = &cells->books;
    bool parts = books->replays[0].open;
    uint32_t *words = cells->word;
    for (uint32_t i = classes->cell_at[owner]; i < classes->cell_at[owner + 1];
         i++) {
        uint32_t s = classes->cell[i];
        for (uint32_t k = 0; k < cells->n_columns; k++)
            MS_TRY(ms_rowkind_find(cells,
                                   ms_cells_rows(cells, cells->column[k])[s], s,
                                   &words[k], fault));
        words[0] = words[0] << 8 | books->state[s];
        if (parts && books->stamp[s] == books->replays[0].tick)
            words[0] |= MS_CELLS_REMADE;
        if (cells->wants && books->stamp[s] == books->replays[0].wanted)
            words[0] |= MS_CELLS_WANTED;
        if (ms_books_in(books->packed, s) != MS_NONE)
            words[0] |= MS_CELLS_PACKED;
        words += cells->n_columns;
    }
    if (parts && owner < classes->shared)
        words = read_wanted(cells, owner, words);
    *n = (uint32_t)(words - cells->word);
    return MS_OK;
}

void ms_cells_end_unit(ms_cells *cells, uint32_t unit)
{
    const ms_graph *graph = cells->graph;
    ms_books *books = &cells->books;
    uint32_t first = graph->forward_at[unit], end = graph->forward_at[unit + 1];
    for (uint32_t i = graph->out_at[first]; i < graph->out_at[end]; i++)
        books->stamp[graph->out[i]] = 0;
    for (uint32_t op = first; op < end; op++)
        books->op_stamp[op] = 0;
}

void ms_cells_clear(ms_cells *cells, uint32_t owner)
{
    const ms_classes *classes = cells->classes;
    ms_books *books = &cells->books;
    for (uint32_t i = classes->cell_at[owner]; i < classes->cell_at[owner + 1];
         i++) {
        uint32_t s = classes->cell[i];
        books->state[s] = 0;
        for (uint32_t k = 0; k < cells->n_columns; k++)
            ms_cells_rows(cells, cells->column[k])[s] = MS_NONE;
        if (books->packed != NULL)
            books->packed[s] = MS_NONE;
    }
}

ms_earlier ms_cells_who(const ms_cells *cells, uint32_t op)
{
    if (op == MS_NONE)
        return (ms_earlier){MS_EARLIER_ALL, 0, 0, 0};
    if (op >= cells->first_op)
        return (ms_earlier){MS_EARLIER_CALL, 0, 0, op - cells->first_op};
    return op == 0 ? (ms_earlier){MS_EARLIER_START, 0, 0, 0} : cells->op[op];
}

/* ---- opening ------------------------------------------------------------- */

bool ms_cells_suit(const ms_cells *cells, const ms_program *program)
{
    const ms_books *books = &cells->books;
    ms_books_columns has = {.streams = books->streams,
                            .host = books->host_row != NULL,
                            .disk = books->nvme_row != NULL,
                            .parts = books->shard_row != NULL};
    ms_books_columns asked =
        ms_books_ask(cells->graph, cells->graph_streams, program);
    return has.streams == asked.streams && has.host == asked.host &&
           has.disk == asked.disk && has.parts == asked.parts &&
           books->n_buffers >= program->n_buffers &&
           (books->packed != NULL) == (program->n_buffers > 0);
}

/* Replays in parts are put in from outside, too. */
static ms_err open_replays(ms_cells *cells)
{
    ms_books *books = &cells->books;
    const ms_graph *graph = cells->graph;
    size_t both = (size_t)graph->n_storages + graph->n_ops;
    books->stamps = ms_arena_take(&cells->arena, both, sizeof *books->stamps);
    books->replays = ms_arena_take(&cells->arena, 1, sizeof *books->replays);
    if (books->stamps == NULL || books->replays == NULL)
        return MS_ENOMEM;
    books->stamp = books->stamps;
    books->op_stamp = books->stamp + graph->n_storages;
    return MS_OK;
}

/* Room for the words of the largest owner. */
static ms_err open_words(ms_cells *cells)
{
    const ms_classes *classes = cells->classes;
    const ms_graph *graph = cells->graph;
    uint32_t most = 1;
    for (uint32_t owner = 0; owner < classes->n_owners; owner++) {
        uint32_t n = classes->cell_at[owner + 1] - classes->cell_at[owner];
        n *= cells->n_columns;
        if (owner < classes->shared)
            n +=
                (graph->forward_at[owner + 1] - graph->forward_at[owner]) / 32 +
                1;
        most = n > most ? n : most;
    }
    cells->word = ms_arena_grow(&cells->arena, NULL, &cells->word_capacity,
                                most, sizeof *cells->word);
    return cells->word != NULL ? MS_OK : MS_ENOMEM;
}

static ms_err open_books(ms_cells *cells, const ms_expand_opts *opts,
                         const ms_program *program)
{
    ms_program asked = *program;
    ms_books *books = &cells->books;
    if (asked.n_sets == 0)
        asked.n_sets = 1; /* columns for what sets keep and hold */
    cells->plan = (ms_plan){
        .graph = cells->graph, .n_ranks = 1, .buffers = program->buffers};
    *books = (ms_books){.graph = cells->graph,
                        .opts = opts,
                        .arena = &cells->arena,
                        .plan = &cells->plan,
                        .fault = &cells->fault};
    MS_TRY(ms_books_open(books, &asked));
    MS_TRY(open_replays(cells));
    cells->n_columns = 0;
    for (int column = 0; column < MS_N_CELLS_COLUMNS; column++)
        if (ms_cells_rows(cells, (ms_cells_column)column) != NULL)
            cells->column[cells->n_columns++] = (uint8_t)column;
    return open_words(cells);
}

ms_err ms_cells_open(ms_cells *cells, const ms_graph *graph,
                     const ms_classes *classes, const ms_expand_opts *opts,
                     const ms_program *program, ms_fault *fault)
{
    ms_arena arena = cells->arena;
    const ms_cells known = *cells; /* what was learnt stays */
    ms_arena_reset(&arena);
    *cells = (ms_cells){.graph = graph,
                        .classes = classes,
                        .arena = arena,
                        .kinds = known.kinds,
                        .fixed = known.fixed,
                        .twin = known.twin,
                        .n_twins = known.n_twins,
                        .twins_capacity = known.twins_capacity,
                        .graph_streams = ms_books_graph_streams(graph)};
    if (open_books(cells, opts, program) != MS_OK)
        return ms_fail_nomem(fault);
    cells->books.weighed = known.books.weighed;
    ms_cells_empty(cells);
    return MS_OK;
}

void ms_cells_close(ms_cells *cells)
{
    ms_arena_free(&cells->arena);
}
