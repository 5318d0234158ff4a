/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The start of a rank: books what exists before the step, each storage in its
 * home memory, and of a shared one this rank's part. */
#include "sim/expand/books.h"

static uint32_t *home_of(const ms_books *books, uint32_t storage)
{
    switch (ms_books_pool(books, storage)) {
    case MS_HOST_POOL:
        return books->host_row;
    case MS_NVME_POOL:
        return books->nvme_row;
    default:
        return ms_books_shared(books, storage) ? books->shard_row : books->row;
    }
}

static void start_in(ms_books *books, const ms_books_at *at, uint32_t storage,
                     uint32_t *rows)
{
    const ms_graph *graph = books->graph;
    bool far = rows == books->host_row || rows == books->nvme_row;
    uint8_t pool = far ? ms_books_pool(books, storage) : MS_DEVICE_POOL;
    uint32_t r = ms_books_take(books, storage, graph->storage_category[storage],
                               pool, false);
    ms_row *row = &books->plan->row[r];
    if (far)
        row->bytes = ms_books_far_bytes(books, storage);
    else if (rows == books->shard_row && rows != books->row)
        row->bytes = graph->storage_shard_bytes[storage];
    rows[ms_books_cell(books, at, storage)] = r;
}

/* For good, or until a micro-batch's drop lists end it (.grad that the next
 * backward clears). */
static inline uint8_t refs_at_start(const ms_graph *graph, uint32_t s)
{
    return graph->storage_local_end[s] < graph->step_first
               ? MS_REF_LOCAL | MS_REF_MADE
               : MS_REF_HOLD | MS_REF_MADE;
}

/* Nothing is shared and all is on the device: the loop of most models, over a
 * third of their rows. */
static void start_plain(ms_books *books, const ms_books_at *at)
{
    const ms_graph *graph = books->graph;
    const uint8_t *at_start = graph->storage_at_start;
    ms_plan *plan = books->plan;
    uint32_t *row = books->row + at->persistent;
    uint8_t *state = books->state + at->persistent;
    uint32_t n = plan->n_rows, op = plan->n_ops - 1, first = n;
    for (uint32_t s = 0; s < graph->n_persistent; s++) {
        if (!at_start[s])
            continue;
        plan->row[n] = (ms_row){.bytes = graph->storage_bytes[s],
                                .storage = s,
                                .op = op,
                                .category = graph->storage_category[s],
                                .pool = MS_DEVICE_POOL};
        state[s] = refs_at_start(graph, s);
        row[s] = n++;
    }
    plan->n_rows = n;
    if (books->reads)
        ms_books_made(books, first);
}

ms_err ms_start_rank(ms_books *books, uint16_t rank)
{
    const ms_graph *graph = books->graph;
    ms_books_at at = ms_books_at_of(books, rank, 0, 0);
    uint32_t wholes = graph->storage_whole ? graph->n_start : 0;
    MS_TRY(ms_books_reserve(books, 1, graph->n_start + wholes, 0));
    ms_books_issue(books, &at, MS_NONE, MS_START, MS_STREAM_COMPUTE, 0);
    if (!graph->storage_pool && !graph->storage_shard_bytes &&
        !books->stage_holds) {
        start_plain(books, &at);
        return MS_OK;
    }
    for (uint32_t s = 0; s < graph->n_persistent; s++) {
        if (!graph->storage_at_start[s] || !ms_books_holds(books, &at, s))
            continue;
        books->state[ms_books_cell(books, &at, s)] = refs_at_start(graph, s);
        start_in(books, &at, s, home_of(books, s));
        if (graph->storage_whole && graph->storage_whole[s])
            start_in(books, &at, s, books->row);
    }
    return MS_OK;
}
