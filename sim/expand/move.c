/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Copies between memories: device, host, disk.
 *
 * A storage that is shared, or whose home is in another memory, moves as this
 * rank's part, which lies in shard_row while it is on the device; any other
 * moves as a whole.  A copy of what has its home in the memory that it comes
 * from leaves the original there; any other move leaves nothing behind.  What
 * has no home on the disk goes there by way of two buffers (diskbuffers.c), or
 * straight (ms_move_call). */
#include "sim/expand/move.h"
#include "sim/expand/books.h"
#include "sim/plan.h"
#include "sim/program.h"

#include <assert.h>

ms_err ms_move_note(ms_books *books, ms_transfer_kind kind, uint64_t bytes)
{
    ms_plan *plan = books->plan;
    if (plan->n_transfers == books->transfers_capacity)
        plan->transfers = ms_arena_grow(
            books->arena, plan->transfers, &books->transfers_capacity,
            plan->n_transfers + 1, sizeof *plan->transfers);
    if (!plan->transfers)
        return ms_fail_nomem(books->fault);
    plan->transfers[plan->n_transfers++] =
        (struct ms_transfer){.op = plan->n_ops,
                             .kind = (uint8_t)kind,
                             .bytes = bytes,
                             .copied = MS_NONE};
    return MS_OK;
}

ms_err ms_move_note_step(ms_books *books, uint32_t op)
{
    static const ms_transfer_kind kinds[MS_N_STREAMS] = {
        [MS_STREAM_H2D] = MS_TRANSFER_H2D,
        [MS_STREAM_D2H] = MS_TRANSFER_D2H,
        [MS_STREAM_NVME_READ] = MS_TRANSFER_NVME_READ,
        [MS_STREAM_NVME_WRITE] = MS_TRANSFER_NVME_WRITE,
    };
    const ms_graph *graph = books->graph;
    uint8_t stream = graph->op_stream[op];
    if (stream == MS_STREAM_COMPUTE || stream == MS_STREAM_HOST ||
        stream == MS_STREAM_COMM) /* an update behind a reduction */
        return MS_OK;
    ms_books_weigh_op(books, op);
    return ms_move_note(books, kinds[stream], graph->op_write_bytes[op]);
}

ms_err ms_move_issue(ms_books *books, const ms_books_at *at,
                     ms_transfer_kind kind, uint8_t stream, uint64_t bytes,
                     uint64_t ns, uint32_t n)
{
    MS_TRY(ms_move_note(books, kind, bytes));
    MS_TRY(ms_books_reserve(books, 1, n, 2 * n + 2));
    ms_books_issue(books, at, MS_NONE, MS_COPY, stream, ns);
    return MS_OK;
}

void ms_move_after_compute(ms_books *books, const ms_books_at *at)
{
    uint32_t last = books->last_compute[at->rank];
    if (last != MS_NONE && last != books->plan->n_ops - 1)
        books->plan->wait[books->n_wait++] = last;
}

/* A side stream that takes copies out and in is a queue: each starts when the
 * one before has ended, whichever engine that one is on. */
static void wait_for_side(ms_books *books, const ms_books_at *at)
{
    uint32_t *last = &books->last_side[at->rank];
    uint32_t op = books->plan->n_ops - 1;
    if (*last != MS_NONE &&
        books->plan->op[*last].stream != books->plan->op[op].stream)
        books->plan->wait[books->n_wait++] = *last;
    *last = op;
}

/* The rate of a copy that goes over two links at once; 0: it takes no time. */
static double slower(double a, double b)
{
    return a <= 0 || (b > 0 && b < a) ? b : a;
}

static double link_rate(const ms_expand_opts *opts, ms_transfer_kind kind)
{
    switch (kind) {
    case MS_TRANSFER_H2D:
        return opts->h2d_bytes_per_s;
    case MS_TRANSFER_D2H:
        return opts->d2h_bytes_per_s;
    case MS_TRANSFER_NVME_READ:
        return opts->nvme_read_bytes_per_s;
    default:
        return opts->nvme_write_bytes_per_s;
    }
}

/* Memory that is not pinned is copied by way of a buffer of the driver (CUDA
 * C++ programming guide, 3.2.5). */
uint64_t ms_move_copy_ns(const ms_expand_opts *opts, ms_transfer_kind kind,
                         bool pageable, bool straight, uint64_t bytes)
{
    double share = 1;
    if (pageable && opts->pageable_share > 0)
        share = opts->pageable_share;
    double rate = link_rate(opts, kind) * share;
    if (straight)
        rate =
            slower(rate, kind == MS_TRANSFER_NVME_READ ? opts->h2d_bytes_per_s
                                                       : opts->d2h_bytes_per_s);
    double ns = rate > 0 ? (double)bytes / rate * 1e9 : 0;
    return opts->copy_ns + (uint64_t)(ns + 0.5);
}

ms_err ms_move_copy(ms_books *books, const ms_books_at *at,
                    ms_transfer_kind kind, ms_move_call how, uint32_t storage,
                    uint64_t bytes)
{
    static const uint8_t streams[] = {
        [MS_TRANSFER_H2D] = MS_STREAM_H2D,
        [MS_TRANSFER_D2H] = MS_STREAM_D2H,
        [MS_TRANSFER_NVME_READ] = MS_STREAM_NVME_READ,
        [MS_TRANSFER_NVME_WRITE] = MS_STREAM_NVME_WRITE,
    };
    ms_plan *plan = books->plan;
    uint8_t stream = how.in_line ? (uint8_t)MS_STREAM_COMPUTE : streams[kind];
    bool in = kind == (how.straight ? MS_TRANSFER_NVME_READ : MS_TRANSFER_H2D);
    MS_TRY(ms_move_issue(
        books, at, kind, stream, bytes,
        ms_move_copy_ns(books->opts, kind, how.pageable, how.straight, bytes),
        1));
    struct ms_transfer *it = &plan->transfers[plan->n_transfers - 1];
    it->copied = storage;
    it->pageable = how.pageable;
    it->straight = how.straight;
    if (in && !how.in_line && !how.ahead)
        ms_move_after_compute(books, at);
    if (how.side)
        wait_for_side(books, at);
    return MS_OK;
}

/* ---- one copy ------------------------------------------------------------ */

/* Does a copy in this memory last whatever happens elsewhere? */
static bool is_home(const ms_books *books, uint32_t storage, uint8_t pool)
{
    return storage < books->graph->n_persistent &&
           ms_books_pool(books, storage) == pool;
}

static void drop(ms_books *books, uint32_t *rows, uint32_t cell)
{
    if (rows[cell] != MS_NONE)
        ms_books_give(books, rows[cell]);
    rows[cell] = MS_NONE;
}

/* The op just issued copies `from` into the cell's row of column `to`, made if
 * there is none. */
static void copy_into(ms_books *books, uint32_t *to, uint32_t cell,
                      uint32_t from, ms_row row)
{
    ms_plan *plan = books->plan;
    ms_books_read(books, from);
    if (to[cell] != MS_NONE) {
        ms_books_write(books, to[cell]);
        return;
    }
    to[cell] =
        ms_books_take(books, row.storage, row.category, row.pool, row.saved);
    plan->row[to[cell]].bytes = row.bytes;
}

/* The host's cores add what has arrived to what was there: two reads and one
 * write. */
static ms_err add_on_host(ms_books *books, const ms_books_at *at, uint32_t row)
{
    uint64_t bytes = 3 * books->plan->row[row].bytes;
    ms_books_weigh(books, books->plan->row[row].storage);
    double rate = books->opts->host_bytes_per_s;
    double ns = rate > 0 ? (double)bytes / rate * 1e9 : 0;
    MS_TRY(ms_books_reserve(books, 1, 0, 2));
    ms_books_issue(books, at, MS_NONE, MS_COPY, MS_STREAM_HOST,
                   (uint64_t)(ns + 0.5));
    ms_books_write(books, row);
    return MS_OK;
}

/* The column that holds the cell's copy on the device: the whole or the part.
 */
static uint32_t *here(ms_books *books, uint32_t cell)
{
    bool part = books->row[cell] == MS_NONE && books->shard_row &&
                books->shard_row[cell] != MS_NONE;
    return part ? books->shard_row : books->row;
}

/* What travels of the row: what will lie there or, as_is, what lies here. */
static uint64_t sent_bytes(const ms_books *books, uint32_t storage,
                           ms_move_call how)
{
    const ms_graph *graph = books->graph;
    if (!how.as_is)
        return ms_books_far_bytes(books, storage);
    return ms_books_shared(books, storage) ? graph->storage_shard_bytes[storage]
                                           : graph->storage_bytes[storage];
}

static ms_err to_host(ms_books *books, const ms_books_at *at, uint32_t storage,
                      ms_move_call how)
{
    uint32_t c = ms_books_cell(books, at, storage);
    uint32_t *column = here(books, c), from = column[c];
    bool there = books->host_row[c] != MS_NONE;
    ms_row row = {.storage = storage,
                  .pool = MS_HOST_POOL,
                  .bytes = ms_books_far_bytes(books, storage)};
    if (column == books->shard_row && storage >= books->graph->n_persistent)
        return MS_OK; /* a part stays where it is */
    if (from == MS_NONE ||
        (there && !is_home(books, storage, MS_HOST_POOL) && !how.adds))
        return MS_OK; /* gone, or on its way */
    if (ms_books_apart(books, storage, c) && column == books->row &&
        books->graph->storage_category[storage] == MS_PARAMETERS) {
        drop(books, column, c); /* what lasts is elsewhere already */
        return MS_OK;
    }
    row.category = books->plan->row[from].category;
    row.saved = books->plan->row[from].saved;
    MS_TRY(ms_move_copy(books, at, MS_TRANSFER_D2H, how, storage,
                        sent_bytes(books, storage, how)));
    copy_into(books, books->host_row, c, from, row);
    if (how.pageable)
        MS_TRY(ms_books_sync(books, at, books->plan->n_ops - 1));
    if (!how.later)
        drop(books, column, c);
    if (there && how.adds)
        return add_on_host(books, at, books->host_row[c]);
    return MS_OK;
}

static ms_err read_disk(ms_books *books, const ms_books_at *at,
                        uint32_t storage)
{
    uint32_t c = ms_books_cell(books, at, storage);
    uint32_t from = ms_books_in(books->nvme_row, c);
    if (from == MS_NONE || books->host_row[c] != MS_NONE)
        return MS_OK;
    ms_row row = books->plan->row[from];
    row.pool = MS_HOST_POOL;
    if (!is_home(books, storage, MS_NVME_POOL))
        ms_diskbuffers_end(books,
                           at->rank); /* writes are over, or about to be */
    MS_TRY(ms_move_copy(books, at, MS_TRANSFER_NVME_READ, (ms_move_call){0},
                        row.storage, row.bytes));
    copy_into(books, books->host_row, c, from, row);
    if (!is_home(books, storage, MS_NVME_POOL))
        drop(books, books->nvme_row, c);
    return MS_OK;
}

static ms_err write_disk(ms_books *books, const ms_books_at *at, uint32_t cell)
{
    ms_row row = books->plan->row[books->host_row[cell]];
    row.pool = MS_NVME_POOL;
    MS_TRY(ms_move_copy(books, at, MS_TRANSFER_NVME_WRITE, (ms_move_call){0},
                        row.storage, row.bytes));
    copy_into(books, books->nvme_row, cell, books->host_row[cell], row);
    return MS_OK;
}

/* The copy out starts when the disk has what was in its buffer. */
static ms_err stage(ms_books *books, const ms_books_at *at, uint32_t storage,
                    ms_move_call how)
{
    uint32_t c = ms_books_cell(books, at, storage);
    bool out = books->host_row[c] == MS_NONE;
    if (books->nvme_row[c] != MS_NONE || (out && books->row[c] == MS_NONE))
        return MS_OK; /* on its way, or gone */
    uint32_t until = ms_diskbuffers_free(books, at);
    if (out)
        MS_TRY(to_host(books, at, storage, how));
    if (out && until != MS_NONE)
        books->plan->wait[books->n_wait++] = until;
    MS_TRY(write_disk(books, at, c));
    MS_TRY(ms_diskbuffers_hold(books, at, books->host_row[c], c));
    books->host_row[c] = MS_NONE;
    return MS_OK;
}

/* The disk reads the device's memory (GPUDirect Storage). */
static ms_err straight_to_disk(ms_books *books, const ms_books_at *at,
                               uint32_t storage, ms_move_call how)
{
    uint32_t c = ms_books_cell(books, at, storage), from = books->row[c];
    if (from == MS_NONE || books->nvme_row[c] != MS_NONE)
        return MS_OK;
    ms_row row = books->plan->row[from];
    row.pool = MS_NVME_POOL;
    MS_TRY(ms_move_copy(books, at, MS_TRANSFER_NVME_WRITE, how, storage,
                        row.bytes));
    copy_into(books, books->nvme_row, c, from, row);
    books->plan->row[books->nvme_row[c]].waited = true; /* is_straight */
    if (!how.later)
        drop(books, books->row, c);
    return MS_OK;
}

static ms_err to_disk(ms_books *books, const ms_books_at *at, uint32_t storage,
                      ms_move_call how)
{
    uint32_t c = ms_books_cell(books, at, storage);
    if (storage >= books->graph->n_persistent && how.straight)
        return straight_to_disk(books, at, storage, how);
    if (storage >= books->graph->n_persistent)
        return stage(books, at, storage, how);
    MS_TRY(to_host(books, at, storage, (ms_move_call){0}));
    if (books->host_row[c] == MS_NONE)
        return MS_OK;
    MS_TRY(write_disk(books, at, c));
    drop(books, books->host_row, c);
    return MS_OK;
}

/* A copy on the disk comes back on the path by which it went.  No one waits to
 * reuse a block of the disk, so that the row's flag is free to record the path.
 */
static bool is_straight(const ms_books *books, uint32_t cell)
{
    uint32_t row = ms_books_in(books->nvme_row, cell);
    return row != MS_NONE && books->plan->row[row].waited;
}

static ms_err straight_from_disk(ms_books *books, const ms_books_at *at,
                                 uint32_t storage, ms_move_call how)
{
    uint32_t c = ms_books_cell(books, at, storage);
    uint32_t from = books->nvme_row[c];
    ms_row row = books->plan->row[from];
    row.pool = MS_DEVICE_POOL;
    row.waited = false;
    how.straight = true;
    MS_TRY(ms_move_copy(books, at, MS_TRANSFER_NVME_READ, how, storage,
                        row.bytes));
    copy_into(books, books->row, c, from, row);
    books->plan->row[books->row[c]].home = MS_HOME_COMPUTE;
    drop(books, books->nvme_row, c);
    return MS_OK;
}

/* A copy comes from the host and is added to what the device has, by way of a
 * buffer that always exists; in the host's memory it stays where that is its
 * home. */
static ms_err add_on_device(ms_books *books, const ms_books_at *at,
                            uint32_t storage, ms_move_call how)
{
    uint32_t c = ms_books_cell(books, at, storage);
    uint32_t row = here(books, c)[c];
    how.as_is = true;
    if (books->nvme_row)
        MS_TRY(read_disk(books, at, storage));
    if (books->host_row[c] == MS_NONE)
        return MS_OK;
    MS_TRY(ms_move_copy(books, at, MS_TRANSFER_H2D, how, storage,
                        sent_bytes(books, storage, how)));
    ms_books_read(books, books->host_row[c]);
    ms_books_write(books, row);
    if (how.pageable)
        MS_TRY(ms_books_sync(books, at, books->plan->n_ops - 1));
    if (!is_home(books, storage, MS_HOST_POOL))
        drop(books, books->host_row, c);
    return MS_OK;
}

/* From the host, where a copy of what has its home there stays. */
static ms_err to_device(ms_books *books, const ms_books_at *at,
                        uint32_t storage, ms_move_call how)
{
    uint32_t c = ms_books_cell(books, at, storage);
    bool part = ms_books_shared(books, storage);
    uint32_t *to = part ? books->shard_row : books->row;
    if (to[c] != MS_NONE || books->row[c] != MS_NONE)
        return how.adds ? add_on_device(books, at, storage, how) : MS_OK;
    if (is_straight(books, c))
        return straight_from_disk(books, at, storage, how);
    if (books->nvme_row)
        MS_TRY(read_disk(books, at, storage));
    uint32_t from = books->host_row[c];
    if (from == MS_NONE)
        return MS_OK;
    ms_row row = books->plan->row[from];
    row.pool = MS_DEVICE_POOL;
    row.bytes = part ? books->graph->storage_shard_bytes[storage]
                     : books->graph->storage_bytes[storage];
    if (row.category == MS_PARAMETERS)
        row.category = MS_COMMUNICATION;
    MS_TRY(ms_move_copy(books, at, MS_TRANSFER_H2D, how, storage, row.bytes));
    copy_into(books, to, c, from, row);
    /* The block is one that the compute stream no longer uses; the next user of
     * a part waits on an event recorded by the collective that reads it. */
    books->plan->row[to[c]].home = MS_HOME_COMPUTE;
    books->plan->row[to[c]].waited = part;
    if (how.pageable)
        MS_TRY(ms_books_sync(books, at, books->plan->n_ops - 1));
    if (!is_home(books, storage, MS_HOST_POOL))
        drop(books, books->host_row, c);
    return MS_OK;
}

void ms_move_let_go(ms_books *books, uint32_t storage, uint32_t cell)
{
    if (books->packed)
        books->packed[cell] = MS_NONE;
    if (!ms_books_apart(books, storage, cell))
        return;
    drop(books, books->row, cell);
    bool far = ms_books_in(books->host_row, cell) != MS_NONE ||
               ms_books_in(books->nvme_row, cell) != MS_NONE;
    if (far && books->shard_row)
        drop(books, books->shard_row, cell);
}

ms_err ms_move_storage(ms_books *books, const ms_books_at *at, uint32_t storage,
                       ms_move_call how)
{
    switch ((ms_place)how.to) {
    case MS_HERE:
        return to_device(books, at, storage, how);
    case MS_HOST:
        if (books->nvme_row)
            MS_TRY(read_disk(books, at, storage));
        return to_host(books, at, storage, how);
    case MS_NVME:
        return to_disk(books, at, storage, how);
    case MS_SHARD:
        if (how.later || storage >= books->graph->n_persistent)
            return MS_OK; /* or divided already */
        ms_move_let_go(books, storage, ms_books_cell(books, at, storage));
        return MS_OK;
    default:
        assert(false);
        return MS_OK;
    }
}

ms_err ms_move_to_host(ms_books *books, const ms_books_at *at, uint32_t storage)
{
    uint32_t c = ms_books_cell(books, at, storage);
    uint32_t row = ms_books_found(books, c);
    if (row == MS_NONE || books->plan->row[row].pool == MS_HOST_POOL)
        return MS_OK;
    return ms_move_storage(books, at, storage,
                           (ms_move_call){.to = MS_HOST, .later = true});
}

/* ---- waiting ------------------------------------------------------------- */

/* What leaves the device: its copy elsewhere, or MS_NONE. */
static uint32_t copied_to(const ms_books *books, const ms_books_at *at,
                          uint32_t storage)
{
    uint32_t c = ms_books_cell(books, at, storage);
    uint32_t row = ms_books_in(books->host_row, c);
    if (row != MS_NONE)
        return is_home(books, storage, MS_HOST_POOL) ? MS_NONE : row;
    row = ms_books_in(books->nvme_row, c);
    if (row == MS_NONE || storage < books->graph->n_persistent)
        return MS_NONE;
    uint32_t staged = ms_diskbuffers_row(books, at, c);
    return staged != MS_NONE ? staged : row;
}

ms_err ms_move_wait(ms_books *books, const ms_books_at *at,
                    const uint32_t *storages, uint32_t n, uint32_t buffer)
{
    MS_TRY(ms_books_reserve(books, 1, 0, 3 * n + 1));
    ms_books_issue(books, at, MS_NONE, MS_COPY, MS_STREAM_COMPUTE, 0);
    uint32_t held =
        buffer == MS_NONE ? MS_NONE : ms_books_buffer(books, at, buffer);
    if (held != MS_NONE)
        ms_books_read(books, held);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t s = storages[i], c = ms_books_cell(books, at, s);
        uint32_t copy = copied_to(books, at, s);
        if (books->row[c] != MS_NONE)
            ms_books_read(books, books->row[c]);
        if (ms_books_in(books->shard_row, c) != MS_NONE)
            ms_books_read(books, books->shard_row[c]);
        if (copy == MS_NONE)
            continue;
        ms_books_read(books, copy);
        if (books->row[c] != MS_NONE)
            books->plan->row[books->row[c]].waited = true;
        drop(books, books->row, c);
    }
    return MS_OK;
}

/* What another rank has sent: a host waits for ops of its own alone. */
static ms_err sync_row(ms_books *books, const ms_books_at *at, uint32_t row,
                       uint32_t buffer)
{
    uint32_t until = books->ready_op[row];
    if (until == MS_NONE || books->plan->op[until].rank == at->rank)
        return ms_books_sync(books, at, until);
    MS_TRY(ms_move_wait(books, at, NULL, 0, buffer));
    return ms_books_sync(books, at, books->plan->n_ops - 1);
}

ms_err ms_move_sync(ms_books *books, const ms_books_at *at,
                    const uint32_t *storages, uint32_t n, const ms_call *call)
{
    uint32_t until = MS_NONE;
    if (books->streams && call->sync.compute)
        return ms_books_sync(books, at, books->last_compute[at->rank]);
    if (books->streams && call->buffer != MS_NONE) {
        uint32_t row = ms_books_buffer(books, at, call->buffer);
        return row != MS_NONE ? sync_row(books, at, row, call->buffer) : MS_OK;
    }
    for (uint32_t i = 0; books->streams && i < n; i++) {
        uint32_t c = ms_books_cell(books, at, storages[i]);
        uint32_t row = ms_books_in(books->host_row, c);
        if (row == MS_NONE)
            row = ms_books_found(books, c);
        if (row == MS_NONE)
            continue;
        if (until == MS_NONE || books->ready_op[row] > until)
            until = books->ready_op[row];
    }
    return until != MS_NONE || n == 0 ? ms_books_sync(books, at, until) : MS_OK;
}
