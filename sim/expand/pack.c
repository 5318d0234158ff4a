/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Flat buffers of the program, and what is packed in them. */
#include "sim/expand/books.h"
#include "sim/program.h"

#include <inttypes.h>

ms_err ms_pack_not_taken(ms_books *books, uint32_t buffer)
{
    return ms_fail(books->fault, MS_EINPUT, books->graph->name,
                   "take it before, and give it once",
                   "buffer %u is used while the program does not have it",
                   buffer);
}

/* Books a buffer of the program. */
static uint32_t take_buffer(ms_books *books, uint32_t buffer,
                            const ms_buffer *value)
{
    ms_plan *plan = books->plan;
    uint32_t r = plan->n_rows++;
    plan->row[r] = (ms_row){.bytes = value->bytes,
                            .storage = MS_NONE,
                            .buffer = buffer,
                            .op = plan->n_ops - 1,
                            .category = value->category,
                            .pool = value->pool,
                            .home = value->home & 3u,
                            .waited = value->waited};
    if (books->reads)
        ms_books_made(books, r);
    return r;
}

ms_err ms_pack_take(ms_books *books, const ms_books_at *at, uint32_t buffer)
{
    const ms_buffer *value = &books->plan->buffers[buffer];
    uint32_t here = at->buffers + buffer;
    if (books->buffer_row[here] != MS_NONE)
        return ms_fail(books->fault, MS_EINPUT, books->graph->name,
                       "give it before", "buffer %u is taken twice", buffer);
    MS_TRY(ms_books_reserve(books, 1, 1, 0));
    ms_books_issue(books, at, MS_NONE, MS_COPY, value->stream, 0);
    books->buffer_row[here] = take_buffer(books, buffer, value);
    books->buffer_read[here] = MS_NONE;
    return MS_OK;
}

ms_err ms_pack_give(ms_books *books, const ms_books_at *at, uint32_t buffer)
{
    const ms_buffer *value = &books->plan->buffers[buffer];
    uint32_t here = at->buffers + buffer, read = books->buffer_read[here];
    if (books->buffer_row[here] == MS_NONE)
        return ms_pack_not_taken(books, buffer);
    if (value->stream != MS_STREAM_COMPUTE && read != MS_NONE) {
        MS_TRY(ms_books_reserve(books, 1, 0, 1));
        ms_books_issue(books, at, MS_NONE, MS_COPY, value->stream, 0);
        books->plan->wait[books->n_wait++] = read;
    }
    ms_books_give(books, books->buffer_row[here]);
    books->buffer_row[here] = MS_NONE;
    return MS_OK;
}

ms_err ms_pack_keep(ms_books *books, const ms_books_at *at, uint32_t storage,
                    uint32_t buffer)
{
    uint32_t c = ms_books_cell(books, at, storage);
    uint32_t here = at->buffers + buffer;
    if (books->buffer_row[here] != MS_NONE)
        return ms_fail(books->fault, MS_EINPUT, books->graph->name,
                       "give it before", "buffer %u is taken twice", buffer);
    if (books->row[c] == MS_NONE || !ms_books_apart(books, storage, c))
        return ms_fail(books->fault, MS_EINPUT, books->graph->name,
                       "gather it before",
                       "buffer %u is to have a copy that is not there", buffer);
    books->buffer_row[here] = books->row[c];
    books->buffer_read[here] = MS_NONE;
    books->row[c] = MS_NONE;
    return MS_OK;
}

ms_err ms_pack_kernel(ms_books *books, const ms_books_at *at, bool ahead,
                      uint64_t bytes, uint32_t n)
{
    uint8_t stream = ahead ? MS_STREAM_COMM : MS_STREAM_COMPUTE;
    double rate = books->opts->hbm_bytes_per_s;
    double ns = rate > 0 ? 2.0 * (double)bytes / rate * 1e9 : 0;
    MS_TRY(ms_books_reserve(books, 1, n, 2 * n + 1));
    ms_books_issue(books, at, MS_NONE, MS_COPY, stream, (uint64_t)(ns + 0.5));
    return MS_OK;
}

/* Where a gradient's part lies in another memory, it is the part that is
 * brought here. */
static bool is_summed_afar(const ms_books *books, uint32_t storage,
                           uint32_t cell)
{
    return books->graph->storage_category[storage] == MS_GRADIENTS &&
           (ms_books_in(books->host_row, cell) != MS_NONE ||
            ms_books_in(books->nvme_row, cell) != MS_NONE);
}

/* The bytes of what is there of a set; out: that comes out of its buffer. */
static uint64_t bytes_of(const ms_books *books, const ms_books_at *at,
                         const uint32_t *storages, uint32_t n, bool out)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = ms_books_cell(books, at, storages[i]);
        bool there =
            books->packed[c] != MS_NONE || (!out && books->row[c] != MS_NONE);
        if (out && is_summed_afar(books, storages[i], c))
            continue;
        bytes += there ? books->graph->storage_bytes[storages[i]] : 0;
        ms_books_weigh(books, storages[i]);
    }
    return bytes;
}

/* The current op reads the buffer. */
static void read_buffer(ms_books *books, const ms_books_at *at, uint32_t buffer)
{
    ms_books_read(books, ms_books_buffer(books, at, buffer));
    books->buffer_read[at->buffers + buffer] = books->plan->n_ops - 1;
}

ms_err ms_pack_into(ms_books *books, const ms_books_at *at,
                    const uint32_t *storages, uint32_t n, const ms_call *call)
{
    uint32_t buffer = call->buffer, to = ms_books_buffer(books, at, buffer);
    if (to == MS_NONE)
        return ms_pack_not_taken(books, buffer);
    uint64_t bytes = bytes_of(books, at, storages, n, false);
    if (bytes == 0)
        return MS_OK;
    MS_TRY(ms_pack_kernel(books, at, call->move.ahead, bytes, n));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = ms_books_cell(books, at, storages[i]);
        uint32_t from = books->row[c], in = books->packed[c];
        if (from != MS_NONE) {
            ms_books_read(books, from);
            if (call->move.ahead && books->plan->row[to].waited)
                books->plan->row[from].waited = true;
            ms_books_give(books, from);
            books->row[c] = MS_NONE;
        } else if (in != MS_NONE && ms_books_buffer(books, at, in) != MS_NONE) {
            read_buffer(books, at, in);
        } else {
            continue;
        }
        books->packed[c] = buffer;
    }
    ms_books_write(books, to);
    return MS_OK;
}

/* What comes out of a buffer is a whole copy of what the ranks share, or what
 * the step has made, and is still saved. */
static uint32_t take_out(ms_books *books, uint32_t storage, uint32_t cell)
{
    bool shared = storage < books->graph->n_persistent;
    bool saved = !shared && books->state[cell] & MS_REF_SAVED;
    bool kept = saved || (!shared && books->state[cell] & MS_REF_HOLDS);
    uint8_t category = shared ? MS_COMMUNICATION
                       : kept ? MS_ACTIVATIONS
                              : MS_TEMPORARIES;
    return ms_books_take(books, storage, category, MS_DEVICE_POOL, saved);
}

ms_err ms_pack_out(ms_books *books, const ms_books_at *at,
                   const uint32_t *storages, uint32_t n, bool ahead)
{
    uint64_t bytes = bytes_of(books, at, storages, n, true);
    if (bytes == 0)
        return MS_OK;
    MS_TRY(ms_pack_kernel(books, at, ahead, bytes, n));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t s = storages[i], c = ms_books_cell(books, at, s);
        uint32_t in = books->packed[c];
        if (in == MS_NONE || books->row[c] != MS_NONE ||
            is_summed_afar(books, s, c))
            continue;
        if (ms_books_buffer(books, at, in) == MS_NONE)
            return ms_pack_not_taken(books, in);
        read_buffer(books, at, in);
        books->packed[c] = MS_NONE;
        books->row[c] = take_out(books, s, c);
    }
    return MS_OK;
}
