/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/fold/cells/rowkind.h"

#include "sim/graph.h"

/* A kind as words: the size and flags, who made and who wrote it, and bytes
 * that are nobody's. */
#define KIND_WORDS 3u

static void pack_kind(const ms_rowkind *kind, uint32_t words[KIND_WORDS])
{
    words[0] = kind->size | (uint32_t)kind->home << 2 |
               (uint32_t)kind->waited << 4 | (uint32_t)kind->maker << 5 |
               (uint32_t)kind->writer << 9 | (uint32_t)kind->streams << 13 |
               (uint32_t)kind->pool << 23 | (uint32_t)kind->category << 25;
    words[1] = (uint32_t)kind->bytes;
    words[2] = (uint32_t)(kind->bytes >> 32);
}

static ms_rowkind unpack_kind(const uint32_t words[KIND_WORDS])
{
    return (ms_rowkind){.size = words[0] & 3u,
                        .home = words[0] >> 2 & 3u,
                        .waited = words[0] >> 4 & 1u,
                        .maker = words[0] >> 5 & 15u,
                        .writer = words[0] >> 9 & 15u,
                        .streams = words[0] >> 13 & MS_ALL_STREAMS,
                        .pool = words[0] >> 23 & 3u,
                        .category = (uint8_t)(words[0] >> 25 & 15u),
                        .bytes = (uint64_t)words[2] << 32 | words[1]};
}

/* bytes: of the row; storage MS_NONE: those of a buffer. */
ms_rowkind_whose ms_rowkind_size(const ms_cells *cells, uint32_t storage,
                                 uint64_t bytes)
{
    const ms_books *books = &cells->books;
    if (storage == MS_NONE)
        return MS_ROWKIND_OTHER;
    if (bytes == cells->graph->storage_bytes[storage])
        return MS_ROWKIND_OWN;
    if (cells->n_columns == 1)
        return MS_ROWKIND_OTHER;
    bool divided = storage >= cells->graph->n_persistent ||
                   ms_books_shared(books, storage);
    if (divided && bytes == ms_books_part_bytes(books, storage))
        return MS_ROWKIND_PART;
    return bytes == ms_books_far_bytes(books, storage) ? MS_ROWKIND_FAR
                                                       : MS_ROWKIND_OTHER;
}

/* The first kinds, one for each category, are those of most rows of one
 * stream's books: of their own bytes, in the device's memory, used by nobody
 * else. */
#define PLAIN 1u

static ms_err take_weighed(ms_cells *cells, ms_fault *fault)
{
    size_t both = (size_t)cells->graph->n_storages + cells->graph->n_ops;
    cells->books.weighed = ms_arena_take(cells->kinds->arena, both, 1);
    return cells->books.weighed != NULL ? MS_OK : ms_fail_nomem(fault);
}

ms_err ms_rowkind_begin(ms_cells *cells, ms_fault *fault)
{
    ms_rowkind plain = {.size = MS_ROWKIND_OWN,
                        .pool = MS_DEVICE_POOL,
                        .maker = MS_STREAM_COMPUTE,
                        .writer = MS_ROWKIND_AT_START};
    uint32_t words[KIND_WORDS], id;
    cells->fixed = false;
    cells->twin = NULL;
    cells->n_twins = cells->twins_capacity = 0;
    cells->books.weighed = NULL;
    if (cells->books.streams)
        MS_TRY(take_weighed(cells, fault));
    for (uint32_t c = 0; c < MS_N_CATEGORIES; c++) {
        plain.category = (uint8_t)c;
        pack_kind(&plain, words);
        MS_TRY(ms_intern_add(cells->kinds, words, KIND_WORDS, &id, fault));
    }
    return MS_OK;
}

static ms_err note_twins(ms_cells *cells, uint32_t made, uint32_t storage,
                         ms_fault *fault)
{
    uint32_t *twin =
        ms_arena_grow(cells->kinds->arena, cells->twin, &cells->twins_capacity,
                      cells->n_twins + 2, sizeof *twin);
    if (twin == NULL)
        return ms_fail_nomem(fault);
    cells->twin = twin;
    twin[cells->n_twins++] = made;
    twin[cells->n_twins++] = storage;
    return MS_OK;
}

/* Are two storages as large, in all that rows may have of them? */
static bool are_as_large(const ms_graph *a, uint32_t storage, const ms_graph *b,
                         uint32_t other)
{
    const uint64_t *part = a->storage_shard_bytes, *far = a->storage_far_bytes;
    bool lasts = storage < a->n_persistent && other < b->n_persistent;
    return a->storage_bytes[storage] == b->storage_bytes[other] &&
           (!lasts || part == NULL ||
            part[storage] == b->storage_shard_bytes[other]) &&
           (!lasts || far == NULL ||
            far[storage] == b->storage_far_bytes[other]);
}

/* Do durations follow from the same bytes? */
static bool weigh_as_much(const ms_cells *cells, const ms_graph *graph)
{
    const ms_graph *before = cells->graph;
    const uint8_t *weighed = cells->books.weighed;
    bool same = true;
    if (weighed == NULL)
        return true;
    for (uint32_t s = 0; s < graph->n_storages; s++)
        same &= !weighed[s] || are_as_large(before, s, graph, s);
    weighed += graph->n_storages;
    for (uint32_t op = 0; op < graph->n_ops; op++)
        same &= !weighed[op] ||
                (before->op_write_bytes[op] == graph->op_write_bytes[op] &&
                 before->op_read_bytes[op] == graph->op_read_bytes[op]);
    return same;
}

/* A rank's part of what a micro-batch makes is smaller than it, but of one
 * byte. */
static bool divide_alike(const ms_cells *cells, const ms_graph *graph)
{
    const ms_graph *before = cells->graph;
    bool same = true;
    if (!cells->books.streams)
        return true;
    for (uint32_t s = graph->n_persistent; s < graph->n_storages; s++)
        same &= (before->storage_bytes[s] > 1) == (graph->storage_bytes[s] > 1);
    return same;
}

bool ms_rowkind_fit(const ms_cells *cells, const ms_graph *graph)
{
    bool same = !cells->fixed && weigh_as_much(cells, graph) &&
                divide_alike(cells, graph);
    for (uint32_t i = 0; same && i < cells->n_twins; i += 2)
        same = are_as_large(graph, cells->twin[i], graph, cells->twin[i + 1]);
    return same;
}

/* With one stream all rows have bytes of their own.  A row may come to be a
 * buffer's, whose bytes are a number. */
static void note_size(ms_cells *cells, const ms_row *row, uint32_t storage,
                      ms_rowkind_whose size)
{
    if (!cells->books.streams)
        cells->fixed |= size != MS_ROWKIND_OWN;
    else if (storage != MS_NONE)
        cells->fixed |= size == MS_ROWKIND_OTHER;
    else if (row->storage != MS_NONE)
        ms_books_weigh(&cells->books, row->storage);
}

static bool is_plain(const ms_cells *cells, const ms_row *row, uint32_t storage)
{
    return !cells->books.streams && storage != MS_NONE && row->home == 0 &&
           !row->waited && row->streams == 0 && row->pool == MS_DEVICE_POOL &&
           row->bytes == cells->graph->storage_bytes[storage] &&
           cells->plan.op[row->op].stream == MS_STREAM_COMPUTE;
}

ms_err ms_rowkind_find(ms_cells *cells, uint32_t row, uint32_t storage,
                       uint32_t *kind, ms_fault *fault)
{
    const ms_books *books = &cells->books;
    uint32_t words[KIND_WORDS], id;
    *kind = 0;
    if (row == MS_NONE)
        return MS_OK;
    const ms_row *it = &cells->plan.row[row];
    cells->fixed |= storage != MS_NONE && it->storage == MS_NONE;
    if (storage != MS_NONE && it->storage != storage && !cells->fixed)
        MS_TRY(note_twins(cells, it->storage, storage, fault));
    if (is_plain(cells, it, storage)) {
        *kind = PLAIN + it->category;
        return MS_OK;
    }
    ms_rowkind value = {.home = it->home,
                        .pool = it->pool,
                        .streams = it->streams,
                        .waited = it->waited,
                        .category =
                            books->streams ? MS_TEMPORARIES : it->category,
                        .maker = cells->plan.op[it->op].stream,
                        .writer = MS_ROWKIND_AT_START};
    value.size = (uint8_t)ms_rowkind_size(cells, storage, it->bytes);
    note_size(cells, it, storage, (ms_rowkind_whose)value.size);
    if (value.size == MS_ROWKIND_OTHER)
        value.bytes = it->bytes;
    if (books->streams) {
        const ms_plan_op *writer = &cells->plan.op[books->ready_op[row]];
        if (writer->pass != MS_START)
            value.writer = writer->stream;
    }
    pack_kind(&value, words);
    MS_TRY(ms_intern_add(cells->kinds, words, KIND_WORDS, &id, fault));
    *kind = id + 1;
    return MS_OK;
}

bool ms_rowkind_is_at_start(const ms_cells *cells, uint32_t kind)
{
    return ms_rowkind_of(cells, kind).writer == MS_ROWKIND_AT_START;
}

uint64_t ms_rowkind_bytes(const ms_cells *cells, ms_rowkind_whose size,
                          uint32_t storage)
{
    if (size == MS_ROWKIND_PART)
        return ms_books_part_bytes(&cells->books, storage);
    return size == MS_ROWKIND_FAR ? ms_books_far_bytes(&cells->books, storage)
                                  : cells->graph->storage_bytes[storage];
}

ms_rowkind ms_rowkind_of(const ms_cells *cells, uint32_t kind)
{
    return unpack_kind(ms_intern_words(cells->kinds, kind - 1));
}
