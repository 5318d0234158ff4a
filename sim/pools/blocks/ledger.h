/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_LEDGER_H
#define MS_LEDGER_H

/* The ledger that every pool keeps (pool.h), for the files of sim/pools/ only:
 * rows of blocks, the sets of idle ones, statistics, the log.  What is called
 * for each request is inline.
 *
 *     row = ms_ledger_cut(pool, found, 3 << 20);  the front of an idle block
 *     ms_ledger_join_set(pool, found);            the rest is idle again
 *     ms_ledger_book(pool, row, bytes);           the front is handed out */

#include "sim/pools/torch/torchpool.h"

/* ---- statistics and the log ---------------------------------------------- */

static inline void ms_ledger_raise(ms_torch *pool, ms_torch_measure measure,
                                   bool large, uint64_t amount)
{
    torch_tally *tally = &pool->tally[measure];
    uint64_t current = tally->current[large] += amount;
    uint64_t all = current + tally->current[!large];
    tally->up[large] += amount;
    if (tally->peak[large] < current)
        tally->peak[large] = current;
    if (tally->peak[2] < all)
        tally->peak[2] = all;
}

static inline void ms_ledger_lower(ms_torch *pool, ms_torch_measure measure,
                                   bool large, uint64_t amount)
{
    pool->tally[measure].current[large] -= amount;
}

static inline void ms_ledger_bump(ms_torch_stat *stat, bool up)
{
    stat->current += up ? 1 : UINT64_MAX;
    *(up ? &stat->allocated : &stat->freed) += 1;
    if (stat->peak < stat->current)
        stat->peak = stat->current;
}

/* Writes an entry to the log, where the caller gave one.  stream: a row, or
 * MS_NONE. */
static inline void ms_ledger_note(const ms_torch *pool, ms_torch_action action,
                                  uint64_t address, uint64_t bytes,
                                  uint32_t stream)
{
    if (pool->log == NULL)
        return;
    ms_torch_entry entry = {
        .action = action, .address = address, .bytes = bytes};
    if (stream != MS_NONE)
        entry.stream = pool->streams[stream].handle;
    pool->log(pool->log_of, &entry);
}

/* ---- rows of the table --------------------------------------------------- */

ms_err ms_ledger_grow(ms_torch *pool, uint32_t n, ms_fault *fault);
/* Room for n rows more; the table may move. */
static inline ms_err ms_ledger_reserve(ms_torch *pool, uint32_t n,
                                       ms_fault *fault)
{
    if (pool->n_spare >= n || pool->blocks_capacity - pool->n_blocks >= n)
        return MS_OK;
    return ms_ledger_grow(pool, n, fault);
}

/* Reserved before; zeroed but for its links. */
static inline uint32_t ms_ledger_take_row(ms_torch *pool)
{
    uint32_t row = pool->spare_block;
    if (row != MS_NONE) {
        pool->spare_block = pool->blocks[row].left;
        pool->n_spare--;
    } else {
        row = pool->n_blocks++;
    }
    pool->blocks[row] = (torch_block){.prev = MS_NONE,
                                      .next = MS_NONE,
                                      .uses = MS_NONE,
                                      .range = MS_NONE,
                                      .flags = TORCH_USED};
    return row;
}

static inline void ms_ledger_drop_row(ms_torch *pool, uint32_t row)
{
    pool->blocks[row].flags = 0;
    pool->blocks[row].left = pool->spare_block;
    pool->spare_block = row;
    pool->n_spare++;
}

/* The front becomes a block of its own, its row is returned; the rest keeps its
 * row.  Sets are not touched. */
static inline uint32_t ms_ledger_cut(ms_torch *pool, uint32_t rest,
                                     uint64_t bytes)
{
    uint32_t row = ms_ledger_take_row(pool);
    torch_block *front = &pool->blocks[row], *tail = &pool->blocks[rest];
    front->address = tail->address;
    front->bytes = bytes;
    front->prev = tail->prev;
    front->next = rest;
    front->range = tail->range;
    front->stream = tail->stream;
    front->flags = tail->flags;
    if (front->prev != MS_NONE)
        pool->blocks[front->prev].next = row;
    tail->prev = row;
    tail->address += bytes;
    tail->bytes -= bytes;
    return row;
}

/* The neighbour becomes part of row.  Sets are not touched. */
static inline void ms_ledger_absorb(ms_torch *pool, uint32_t row,
                                    uint32_t neighbour)
{
    torch_block *to = &pool->blocks[row], *from = &pool->blocks[neighbour];
    to->bytes += from->bytes;
    if (to->prev == neighbour) {
        to->address = from->address;
        to->prev = from->prev;
        if (to->prev != MS_NONE)
            pool->blocks[to->prev].next = row;
    } else {
        to->next = from->next;
        if (to->next != MS_NONE)
            pool->blocks[to->next].prev = row;
    }
    ms_ledger_drop_row(pool, neighbour);
}

/* ---- sets of idle blocks, and their use ---------------------------------- */

/* The set is there: a block of this stream was made. */
void ms_ledger_join_set(ms_torch *pool, uint32_t row);
void ms_ledger_leave_set(ms_torch *pool, uint32_t row);
/* Merges the neighbour into the row if it is idle and equally mapped; returns
 * its bytes, or 0. */
static inline uint64_t ms_ledger_merge(ms_torch *pool, uint32_t row,
                                       uint32_t neighbour)
{
    if (neighbour == MS_NONE)
        return 0;
    const torch_block *to = &pool->blocks[row];
    const torch_block *from = &pool->blocks[neighbour];
    if (!torch_idle(from) || ((to->flags ^ from->flags) & TORCH_MAPPED) != 0)
        return 0;
    uint64_t bytes = from->bytes;
    ms_ledger_leave_set(pool, neighbour);
    ms_ledger_absorb(pool, row, neighbour);
    return bytes;
}

/* A block is handed out. */
static inline void ms_ledger_book(ms_torch *pool, uint32_t row, uint64_t bytes)
{
    torch_block *block = &pool->blocks[row];
    bool large = (block->flags & TORCH_LARGE) != 0;
    block->flags |= TORCH_ALLOCATED;
    block->requested_bytes = bytes;
    ms_ledger_raise(pool, MS_TORCH_ALLOCATION, large, 1);
    ms_ledger_raise(pool, MS_TORCH_ALLOCATED_BYTES, large, block->bytes);
    ms_ledger_raise(pool, MS_TORCH_ACTIVE, large, 1);
    ms_ledger_raise(pool, MS_TORCH_ACTIVE_BYTES, large, block->bytes);
    ms_ledger_raise(pool, MS_TORCH_REQUESTED_BYTES, large, bytes);
    if (block->bytes >= pool->options.max_split_bytes)
        ms_ledger_bump(&pool->oversize_allocations, true);
    ms_ledger_note(pool, MS_TORCH_ALLOC, block->address, bytes, block->stream);
}

/* A free is complete: the block is idle and joins its neighbours. */
void ms_ledger_complete(ms_torch *pool, uint32_t row);

#endif
