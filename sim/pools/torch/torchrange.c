/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Expandable segments of the torch pool: a range of addresses per stream and
 * pool, larger than the device, in which pages get memory one by one
 * (sim/pools/README.md 10). */
#include "sim/pools/blocks/ledger.h"

/* ---- ranges -------------------------------------------------------------- */

static ms_err take_range(ms_torch *pool, uint32_t *row, ms_fault *fault)
{
    if (pool->spare_range != MS_NONE) {
        *row = pool->spare_range;
        pool->spare_range = pool->ranges[*row].next;
        return MS_OK;
    }
    pool->ranges =
        ms_arena_grow(pool->arena, pool->ranges, &pool->ranges_capacity,
                      pool->n_ranges + 1, sizeof *pool->ranges);
    if (pool->ranges == NULL)
        return ms_fail_nomem(fault);
    *row = pool->n_ranges++;
    return MS_OK;
}

/* A range of 9/8 of the device, as one unmapped block; MS_NONE: no addresses.
 * (A list of answers that does not map now has none.) */
static ms_err new_range(ms_torch *pool, const torch_request *request,
                        uint32_t *block)
{
    uint64_t total = pool->vram.total_bytes, address;
    uint64_t page = request->large ? pool->options.large_segment_bytes
                                   : TORCH_SMALL_SEGMENT;
    uint64_t bytes = (total + total / 8 + page - 1) / page * page;
    uint32_t range = MS_NONE;
    *block = MS_NONE;
    MS_TRY(ms_vram_reserve(&pool->vram, pool->arena, bytes, &address,
                           request->fault));
    if (address == 0)
        return MS_OK;
    MS_TRY(take_range(pool, &range, request->fault));
    pool->ranges[range] =
        (torch_range){.address = address, .bytes = bytes, .page_bytes = page};
    MS_TRY(ms_ledger_reserve(pool, 1, request->fault));
    *block = ms_ledger_take_row(pool);
    torch_block *made = &pool->blocks[*block];
    made->address = address;
    made->bytes = bytes;
    made->range = range;
    made->stream = (uint16_t)request->stream;
    made->flags |= request->large ? TORCH_LARGE : 0;
    ms_ledger_join_set(pool, *block);
    return MS_OK;
}

/* The block is all of a range and unmapped. */
static void drop_range(ms_torch *pool, uint32_t block)
{
    uint32_t range = pool->blocks[block].range;
    ms_ledger_leave_set(pool, block);
    ms_ledger_drop_row(pool, block);
    ms_vram_release(&pool->vram, pool->ranges[range].address);
    pool->ranges[range].next = pool->spare_range;
    pool->spare_range = range;
}

/* ---- mapping ------------------------------------------------------------- */

/* A block beside row, before or after it, of the same range. */
static uint32_t add_beside(ms_torch *pool, uint32_t row, bool before,
                           uint64_t address, uint64_t bytes, bool mapped)
{
    uint32_t added = ms_ledger_take_row(pool);
    torch_block *block = &pool->blocks[row], *made = &pool->blocks[added];
    made->address = address;
    made->bytes = bytes;
    made->range = block->range;
    made->stream = block->stream;
    made->flags |= block->flags & TORCH_LARGE;
    made->flags |= mapped ? TORCH_MAPPED : 0;
    made->prev = before ? block->prev : row;
    made->next = before ? row : block->next;
    if (made->prev != MS_NONE)
        pool->blocks[made->prev].next = added;
    if (made->next != MS_NONE)
        pool->blocks[made->next].prev = added;
    return added;
}

/* Gives the unmapped block memory for its first n bytes, in whole pages.
 * False: the device has none. */
static ms_err map_block(ms_torch *pool, uint32_t row, uint64_t n, bool *mapped,
                        ms_fault *fault)
{
    MS_TRY(ms_ledger_reserve(pool, 2, fault));
    torch_block *block = &pool->blocks[row];
    const torch_range *range = &pool->ranges[block->range];
    bool large = (block->flags & TORCH_LARGE) != 0;
    uint64_t page = range->page_bytes;
    uint64_t offset = block->address - range->address;
    uint64_t bytes = (offset + n + page - 1) / page * page - offset;
    uint64_t address = block->address;
    *mapped = ms_vram_map(&pool->vram, address, bytes);
    if (!*mapped)
        return MS_OK;
    ms_ledger_leave_set(pool, row);
    block->flags |= TORCH_MAPPED;
    if (bytes < block->bytes) {
        uint32_t rest = add_beside(pool, row, false, address + bytes,
                                   block->bytes - bytes, false);
        ms_ledger_join_set(pool, rest);
        block->bytes = bytes;
    }
    ms_ledger_merge(pool, row, block->prev);
    ms_ledger_merge(pool, row, block->next);
    ms_ledger_join_set(pool, row);
    pool->reserved_bytes += bytes;
    pool->device_allocs++;
    ms_ledger_raise(pool, MS_TORCH_RESERVED_BYTES, large, bytes);
    ms_ledger_note(pool, MS_TORCH_SEGMENT_MAP, address, bytes, block->stream);
    return MS_OK;
}

/* ---- new memory ---------------------------------------------------------- */

/* Do the idle neighbours from row on hold so many bytes, mapped or not? */
static bool has_space(const ms_torch *pool, uint32_t row, uint64_t bytes)
{
    uint64_t sum = 0;
    while (sum < bytes && row != MS_NONE && torch_idle(&pool->blocks[row])) {
        sum += pool->blocks[row].bytes;
        row = pool->blocks[row].next;
    }
    return sum >= bytes;
}

/* The lowest unmapped block that has space, or the idle one before it. */
static uint32_t find_space(const ms_torch *pool, const torch_request *request)
{
    uint32_t root = pool->streams[request->stream].unmapped[request->large];
    uint32_t row = ms_freeset_tree_after(root, pool->blocks, 0);
    while (row != MS_NONE) {
        uint32_t from = row, prev = pool->blocks[row].prev;
        if (prev != MS_NONE && torch_idle(&pool->blocks[prev]))
            from = prev;
        if (has_space(pool, from, request->bytes))
            return from;
        row = ms_freeset_tree_after(root, pool->blocks,
                                    pool->blocks[row].address + 1);
    }
    return MS_NONE;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

ms_err ms_torchrange_take(ms_torch *pool, torch_request *request)
{
    ms_fault *fault = request->fault;
    bool mapped;
    uint32_t row = find_space(pool, request);
    if (row == MS_NONE)
        MS_TRY(new_range(pool, request, &row));
    if (row == MS_NONE)
        return MS_OK;
    if ((pool->blocks[row].flags & TORCH_MAPPED) == 0) {
        uint64_t n = least(pool->blocks[row].bytes, request->bytes);
        MS_TRY(map_block(pool, row, n, &mapped, fault));
        if (!mapped)
            return MS_OK;
    }
    while (pool->blocks[row].bytes < request->bytes) {
        uint32_t next = pool->blocks[row].next;
        if (next == MS_NONE) /* a request over the range: never mapped */
            return MS_OK;
        uint64_t n = least(request->bytes - pool->blocks[row].bytes,
                           pool->blocks[next].bytes);
        MS_TRY(map_block(pool, next, n, &mapped, fault));
        if (!mapped)
            return MS_OK;
        row = next; /* it took up row */
    }
    ms_ledger_leave_set(pool, row);
    request->block = row;
    return ms_ledger_reserve(pool, 2, fault);
}

/* ---- unmapping ----------------------------------------------------------- */

/* What is left of the block before and after its whole pages. */
static void keep_ends(ms_torch *pool, uint32_t row, uint64_t first,
                      uint64_t end)
{
    torch_block *block = &pool->blocks[row];
    uint64_t block_end = block->address + block->bytes;
    if (first > block->address)
        ms_ledger_join_set(pool, add_beside(pool, row, true, block->address,
                                            first - block->address, true));
    if (block_end > end)
        ms_ledger_join_set(
            pool, add_beside(pool, row, false, end, block_end - end, true));
}

/* Only the whole pages inside the block are unmapped; what is left at its ends
 * stays mapped as blocks of their own (c10/cuda/CUDACachingAllocator.cpp,
 * unmap_block). */
ms_err ms_torchrange_unmap(ms_torch *pool, uint32_t row, ms_fault *fault)
{
    MS_TRY(ms_ledger_reserve(pool, 2, fault));
    torch_block *block = &pool->blocks[row];
    const torch_range *range = &pool->ranges[block->range];
    bool large = (block->flags & TORCH_LARGE) != 0;
    uint64_t page = range->page_bytes;
    uint64_t offset = block->address - range->address;
    uint64_t first = (offset + page - 1) / page * page + range->address;
    uint64_t end = (offset + block->bytes) / page * page + range->address;
    if (first >= end)
        return MS_OK;
    ms_torchstreams_sync(pool, block->stream);
    ms_vram_unmap(&pool->vram, end - first);
    ms_ledger_leave_set(pool, row);
    keep_ends(pool, row, first, end);
    block->address = first;
    block->bytes = end - first;
    block->flags &= (uint16_t)~TORCH_MAPPED;
    ms_ledger_merge(pool, row, block->prev);
    ms_ledger_merge(pool, row, block->next);
    ms_ledger_join_set(pool, row);
    pool->reserved_bytes -= end - first;
    pool->device_frees++;
    ms_ledger_lower(pool, MS_TORCH_RESERVED_BYTES, large, end - first);
    ms_ledger_note(pool, MS_TORCH_SEGMENT_UNMAP, first, end - first,
                   block->stream);
    if (!torch_split(block))
        drop_range(pool, row);
    return MS_OK;
}
