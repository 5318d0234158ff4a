/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/pools/blocks/ledger.h"
#include "sim/pools/heap.h"

ms_err ms_ledger_grow(ms_torch *pool, uint32_t n, ms_fault *fault)
{
    torch_block *grown =
        ms_arena_grow(pool->arena, pool->blocks, &pool->blocks_capacity,
                      pool->n_blocks + n, sizeof *grown);
    if (grown == NULL)
        return ms_fail_nomem(fault);
    pool->blocks = grown;
    return MS_OK;
}

void ms_ledger_join_set(ms_torch *pool, uint32_t row)
{
    torch_block *block = &pool->blocks[row];
    bool large = (block->flags & TORCH_LARGE) != 0;
    torch_stream *stream = &pool->streams[block->stream];
    if ((block->flags & TORCH_MAPPED) == 0) {
        ms_freeset_tree_insert(&stream->unmapped[large], pool->blocks, row);
        return;
    }
    block->mark = pool->searches[large];
    ms_freeset_insert(stream->idle[large], pool->blocks, row);
}

void ms_ledger_leave_set(ms_torch *pool, uint32_t row)
{
    const torch_block *block = &pool->blocks[row];
    bool large = (block->flags & TORCH_LARGE) != 0;
    torch_stream *stream = &pool->streams[block->stream];
    if ((block->flags & TORCH_MAPPED) == 0)
        ms_freeset_tree_remove(&stream->unmapped[large], pool->blocks, row);
    else
        ms_freeset_remove(stream->idle[large], pool->blocks, row);
}

/* As one net change: a peak in between is not seen. */
static void change_split(ms_torch *pool, bool large, uint32_t n_merged,
                         uint64_t merged_bytes, const torch_block *result)
{
    uint64_t bytes = torch_split(result) ? result->bytes : 0;
    uint32_t split = bytes > 0 ? 1 : 0;
    if (bytes >= merged_bytes)
        ms_ledger_raise(pool, MS_TORCH_INACTIVE_SPLIT_BYTES, large,
                        bytes - merged_bytes);
    else
        ms_ledger_lower(pool, MS_TORCH_INACTIVE_SPLIT_BYTES, large,
                        merged_bytes - bytes);
    if (split >= n_merged)
        ms_ledger_raise(pool, MS_TORCH_INACTIVE_SPLIT, large, split - n_merged);
    else
        ms_ledger_lower(pool, MS_TORCH_INACTIVE_SPLIT, large, n_merged - split);
}

/* The block is idle: it joins its neighbours. */
static void give_back(ms_torch *pool, uint32_t row)
{
    const torch_block *block = &pool->blocks[row];
    uint64_t before = ms_ledger_merge(pool, row, block->prev);
    uint64_t after = ms_ledger_merge(pool, row, block->next);
    ms_ledger_join_set(pool, row);
    if (block->range == MS_NONE)
        change_split(pool, (block->flags & TORCH_LARGE) != 0,
                     (before > 0 ? 1u : 0u) + (after > 0 ? 1u : 0u),
                     before + after, block);
}

void ms_ledger_complete(ms_torch *pool, uint32_t row)
{
    torch_block *block = &pool->blocks[row];
    bool large = (block->flags & TORCH_LARGE) != 0;
    uint64_t bytes = block->bytes;
    ms_ledger_note(pool, MS_TORCH_FREE_COMPLETED, block->address,
                   block->requested_bytes, block->stream);
    if (pool->rules == NULL)
        give_back(pool, row);
    else
        pool->rules->give(pool, row);
    ms_ledger_lower(pool, MS_TORCH_ACTIVE, large, 1);
    ms_ledger_lower(pool, MS_TORCH_ACTIVE_BYTES, large, bytes);
    ms_ledger_lower(pool, MS_TORCH_REQUESTED_BYTES, large,
                    block->requested_bytes);
}
