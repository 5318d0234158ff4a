/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Buddies, as textbooks have them (sim/pools/README.md 19): an arena of 2^k
 * bytes is halved down to the smallest power of two that holds the request; an
 * idle half joins its other half.  Of the smallest blocks that are large enough
 * the one at the lowest address serves.  An arena without a size doubles: its
 * other half comes from the device when no block is left that serves. */
#include "sim/pools/blocks/ledger.h"
#include "sim/pools/heap.h"

#define LEAST UINT64_C(512)
#define MOST_HALVES 64u /* a size has 64 bits, and each halving takes one */

static uint64_t round_bytes(const ms_torch *pool, uint64_t bytes)
{
    uint64_t least = pool->heap->options.least_bytes;
    least = least > 0 ? least : LEAST;
    if (bytes <= least)
        return least;
    return UINT64_C(1) << (64 - __builtin_clzll(bytes - 1));
}

/* The other half of what the block was cut from, or MS_NONE: it is the arena. A
 * block lies at a multiple of its size, so that the bit of the size in its
 * offset says whether it is the lower half or the upper one. */
static uint32_t buddy_of(const ms_torch *pool, uint32_t row)
{
    const torch_block *block = &pool->blocks[row];
    uint64_t offset = block->address - pool->heap->segments[0].address;
    return (offset & block->bytes) == 0 ? block->next : block->prev;
}

static void give(ms_torch *pool, uint32_t row)
{
    for (;;) {
        uint32_t other = buddy_of(pool, row);
        if (other == MS_NONE ||
            pool->blocks[other].bytes != pool->blocks[row].bytes ||
            ms_ledger_merge(pool, row, other) == 0)
            break;
    }
    ms_heap_note_ends(pool, row);
    ms_ledger_join_set(pool, row);
}

static bool apart(const ms_torch *pool, uint32_t row, uint32_t next)
{
    return buddy_of(pool, row) != next ||
           pool->blocks[row].bytes != pool->blocks[next].bytes;
}

/* ---- requests ------------------------------------------------------------ */

/* Does the device have the arena that would serve?  An idle one becomes as
 * large as the request, else a half that is new has to be. */
static bool can_grow(const ms_torch *pool, const torch_request *request)
{
    uint64_t now = pool->reserved_bytes, wanted = request->bytes;
    if (wanted < TORCH_ROUND_SEGMENT)
        wanted = TORCH_ROUND_SEGMENT;
    if (pool->heap->options.size_bytes > 0)
        return true;
    if (ms_torchview_current(pool, MS_TORCH_ACTIVE_BYTES) > 0)
        wanted = 2 * (wanted > now ? wanted : now);
    return wanted - now <= ms_heap_left(pool);
}

static ms_err grow(ms_torch *pool, torch_request *request, uint32_t *row)
{
    const pool_heap *heap = pool->heap;
    uint64_t fixed = heap->options.size_bytes, bytes = request->bytes;
    *row = MS_NONE;
    if (heap->n_segments > 0) {
        if (fixed > 0)
            return MS_OK;
        return ms_heap_extend(pool, request, heap->segments[0].bytes, row);
    }
    if (fixed == 0)
        return ms_heap_extend(
            pool, request,
            bytes > TORCH_ROUND_SEGMENT ? bytes : TORCH_ROUND_SEGMENT, row);
    return fixed <= ms_heap_left(pool)
               ? ms_heap_segment(pool, request, fixed, row)
               : MS_OK;
}

static void halve(ms_torch *pool, torch_request *request, uint32_t row)
{
    while (pool->blocks[row].bytes > request->bytes) {
        uint32_t upper = row;
        row = ms_ledger_cut(pool, upper, pool->blocks[upper].bytes / 2);
        ms_ledger_join_set(pool, upper);
    }
    request->block = row;
}

static ms_err take(ms_torch *pool, torch_request *request)
{
    const torch_freeset *idle = &pool->heap->idle;
    uint32_t row;
    if (request->bytes > MS_TORCH_MOST_BYTES ||
        (ms_freeset_least(idle, pool->blocks, request->bytes) == MS_NONE &&
         !can_grow(pool, request)))
        return MS_OK;
    MS_TRY(ms_ledger_reserve(pool, MOST_HALVES, request->fault));
    while ((row = ms_freeset_least(idle, pool->blocks, request->bytes)) ==
           MS_NONE) {
        MS_TRY(grow(pool, request, &row));
        if (row == MS_NONE)
            return MS_OK;
        give(pool, row);
    }
    ms_ledger_leave_set(pool, row);
    halve(pool, request, row);
    return MS_OK;
}

const pool_rules ms_buddy_rules = {round_bytes, take, give, apart};
