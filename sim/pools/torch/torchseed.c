/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A torch pool that begins as a recorded one stood. */
#include "sim/pools/blocks/ledger.h"

static void link_after(ms_torch *pool, uint32_t row, uint32_t prev)
{
    pool->blocks[row].prev = prev;
    if (prev != MS_NONE)
        pool->blocks[prev].next = row;
}

static void count(ms_torch *pool, const torch_block *block)
{
    bool large = (block->flags & TORCH_LARGE) != 0;
    if ((block->flags & TORCH_ALLOCATED) == 0)
        return;
    ms_ledger_raise(pool, MS_TORCH_ALLOCATION, large, 1);
    ms_ledger_raise(pool, MS_TORCH_ALLOCATED_BYTES, large, block->bytes);
    ms_ledger_raise(pool, MS_TORCH_ACTIVE, large, 1);
    ms_ledger_raise(pool, MS_TORCH_ACTIVE_BYTES, large, block->bytes);
    ms_ledger_raise(pool, MS_TORCH_REQUESTED_BYTES, large,
                    block->requested_bytes);
    if (block->bytes >= pool->options.max_split_bytes)
        ms_ledger_bump(&pool->oversize_allocations, true);
}

/* Counts the blocks; idle ones join their set.  Only when all neighbours are
 * linked is it known whether a block is part of a split segment. */
static void join_sets(ms_torch *pool, const uint32_t *rows, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const torch_block *block = &pool->blocks[rows[i]];
        bool large = (block->flags & TORCH_LARGE) != 0;
        count(pool, block);
        if (!torch_idle(block))
            continue;
        if (torch_split(block)) {
            ms_ledger_raise(pool, MS_TORCH_INACTIVE_SPLIT, large, 1);
            ms_ledger_raise(pool, MS_TORCH_INACTIVE_SPLIT_BYTES, large,
                            block->bytes);
        }
        ms_ledger_join_set(pool, rows[i]);
    }
}

ms_err ms_torchseed_segment(ms_torch *pool, const ms_torch_origin *origin,
                            const ms_torch_piece *pieces, uint32_t n,
                            uint32_t *rows, ms_fault *fault)
{
    torch_request request = {.large = !origin->small, .fault = fault};
    uint64_t address = origin->address;
    MS_TRY(ms_torch_prepare(pool, &request, origin->stream));
    MS_TRY(ms_ledger_reserve(pool, n, fault));
    for (uint32_t i = 0; i < n; i++) {
        bool idle = pieces[i].requested_bytes == UINT64_MAX;
        rows[i] = ms_ledger_take_row(pool);
        torch_block *block = &pool->blocks[rows[i]];
        block->address = address;
        block->bytes = pieces[i].bytes;
        block->requested_bytes = idle ? 0 : pieces[i].requested_bytes;
        block->stream = (uint16_t)request.stream;
        block->flags |= TORCH_MAPPED;
        block->flags |= origin->small ? 0 : TORCH_LARGE;
        block->flags |= idle ? 0 : TORCH_ALLOCATED;
        link_after(pool, rows[i], i > 0 ? rows[i - 1] : MS_NONE);
        address += pieces[i].bytes;
    }
    uint64_t bytes = address - origin->address;
    MS_TRY(
        ms_vram_seed(&pool->vram, pool->arena, origin->address, bytes, fault));
    pool->reserved_bytes += bytes;
    ms_ledger_raise(pool, MS_TORCH_SEGMENT, !origin->small, 1);
    ms_ledger_raise(pool, MS_TORCH_RESERVED_BYTES, !origin->small, bytes);
    if (bytes >= pool->options.max_split_bytes)
        ms_ledger_bump(&pool->oversize_segments, true);
    join_sets(pool, rows, n);
    return MS_OK;
}
