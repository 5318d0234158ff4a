/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What can be seen of a torch pool: statistics and snapshots
 * (sim/pools/README.md 11, sim/pools/README.md 15). */
#include "sim/pools/blocks/ledger.h"
#include "sim/pools/heap.h"

#include <stdlib.h>

const char *const ms_torchview_measures[] = {
    "allocation",      "segment",        "active",       "inactive_split",
    "allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes",
    "requested_bytes"};
const char *const ms_torchview_scopes[] = {"all", "small_pool", "large_pool"};
const char *const ms_torchview_states[] = {"active_allocated",
                                           "active_pending_free", "inactive"};

/* ---- statistics ---------------------------------------------------------- */

/* The sum of decreases is the sum of increases less the present value. */
static ms_torch_stat stat_of(uint64_t current, uint64_t peak, uint64_t up)
{
    return (ms_torch_stat){.current = current,
                           .peak = peak,
                           .allocated = up,
                           .freed = up - current};
}

void ms_torchview_stats(const ms_torch *pool, ms_torch_stats *stats)
{
    *stats =
        (ms_torch_stats){.oversize_allocations = pool->oversize_allocations,
                         .oversize_segments = pool->oversize_segments,
                         .retries = pool->retries,
                         .ooms = pool->ooms,
                         .device_allocs = pool->device_allocs,
                         .device_frees = pool->device_frees,
                         .max_split_bytes = pool->options.max_split_bytes,
                         .device_used_bytes = pool->vram.used_bytes};
    for (uint32_t i = 0; i < MS_TORCH_N_MEASURES; i++) {
        const torch_tally *t = &pool->tally[i];
        stats->of[i][MS_TORCH_SMALL] =
            stat_of(t->current[0], t->peak[0], t->up[0]);
        stats->of[i][MS_TORCH_LARGE] =
            stat_of(t->current[1], t->peak[1], t->up[1]);
        stats->of[i][MS_TORCH_ALL] = stat_of(t->current[0] + t->current[1],
                                             t->peak[2], t->up[0] + t->up[1]);
    }
}

uint64_t ms_torchview_current(const ms_torch *pool, ms_torch_measure measure)
{
    return pool->tally[measure].current[0] + pool->tally[measure].current[1];
}

uint64_t ms_torchview_peak(const ms_torch *pool, ms_torch_measure measure)
{
    return pool->tally[measure].peak[2];
}

uint64_t ms_torchview_retries(const ms_torch *pool)
{
    return pool->retries;
}

uint64_t ms_torchview_ooms(const ms_torch *pool)
{
    return pool->ooms;
}

uint64_t ms_torchview_device_used(const ms_torch *pool)
{
    return pool->vram.used_bytes;
}

uint64_t ms_torchview_limit(const ms_torch *pool)
{
    return pool->limit_bytes;
}

/* ---- snapshots ----------------------------------------------------------- */

static ms_torch_block_view view_of(const torch_block *block)
{
    return (ms_torch_block_view){.address = block->address,
                                 .bytes = block->bytes,
                                 .requested_bytes = block->requested_bytes,
                                 .state = (block->flags & TORCH_ALLOCATED) != 0
                                              ? MS_TORCH_ACTIVE_ALLOCATED
                                          : torch_idle(block)
                                              ? MS_TORCH_INACTIVE
                                              : MS_TORCH_ACTIVE_PENDING};
}

ms_torch_block_view ms_torchview_block(const ms_torch *pool, uint32_t block)
{
    return view_of(&pool->blocks[block]);
}

/* The first of a segment, or of a mapped run of a range. */
static bool is_head(const ms_torch *pool, const torch_block *block)
{
    return (block->flags & TORCH_USED) != 0 &&
           (block->flags & TORCH_MAPPED) != 0 &&
           (block->prev == MS_NONE ||
            (pool->blocks[block->prev].flags & TORCH_MAPPED) == 0);
}

typedef struct head {
    uint64_t address;
    uint32_t row;
} head;

static int by_address(const void *a, const void *b)
{
    uint64_t x = ((const head *)a)->address, y = ((const head *)b)->address;
    return (x > y) - (x < y);
}

static void add_block(ms_torch_segment_view *segment, ms_torch_block_view *to,
                      const torch_block *block)
{
    *to = view_of(block);
    segment->bytes += to->bytes;
    segment->n_blocks++;
    if (to->state == MS_TORCH_ACTIVE_ALLOCATED)
        segment->allocated_bytes += to->bytes;
    if (to->state == MS_TORCH_INACTIVE)
        return;
    segment->active_bytes += to->bytes;
    segment->requested_bytes += to->requested_bytes;
}

static ms_torch_segment_view segment_of(const ms_torch *pool,
                                        const torch_block *first)
{
    return (ms_torch_segment_view){
        .address = first->address,
        .stream = pool->rules == NULL ? pool->streams[first->stream].handle : 0,
        .small = (first->flags & TORCH_LARGE) == 0,
        .expandable = first->range != MS_NONE};
}

static uint32_t fill_segment(const ms_torch *pool, uint32_t row,
                             ms_torch_segment_view *segment,
                             ms_torch_block_view *blocks)
{
    *segment = segment_of(pool, &pool->blocks[row]);
    segment->blocks = blocks;
    for (; row != MS_NONE; row = pool->blocks[row].next) {
        if ((pool->blocks[row].flags & TORCH_MAPPED) == 0)
            break;
        add_block(segment, &blocks[segment->n_blocks], &pool->blocks[row]);
    }
    return segment->n_blocks;
}

ms_err ms_torchview_snapshot(const ms_torch *pool, ms_arena *arena,
                             ms_torch_snapshot *snapshot, ms_fault *fault)
{
    uint32_t n = 0, n_heads = 0;
    for (uint32_t i = 0; i < pool->n_blocks; i++) {
        n += (pool->blocks[i].flags & TORCH_USED) != 0;
        n_heads += is_head(pool, &pool->blocks[i]);
    }
    head *heads = ms_arena_take_raw(arena, n_heads, sizeof *heads);
    ms_torch_segment_view *segments =
        ms_arena_take_raw(arena, n_heads, sizeof *segments);
    ms_torch_block_view *blocks = ms_arena_take_raw(arena, n, sizeof *blocks);
    if (heads == NULL || segments == NULL || blocks == NULL)
        return ms_fail_nomem(fault);
    n_heads = 0;
    for (uint32_t i = 0; i < pool->n_blocks; i++)
        if (is_head(pool, &pool->blocks[i]))
            heads[n_heads++] = (head){pool->blocks[i].address, i};
    qsort(heads, n_heads, sizeof *heads, by_address);
    for (uint32_t i = 0; i < n_heads; i++)
        blocks += fill_segment(pool, heads[i].row, &segments[i], blocks);
    *snapshot =
        (ms_torch_snapshot){.segments = segments, .n_segments = n_heads};
    return MS_OK;
}

uint32_t ms_torchview_idle(const ms_torch *pool, uint32_t row,
                           ms_torch_segment_view *idle)
{
    const uint16_t present = TORCH_USED | TORCH_MAPPED;
    for (; row < pool->n_blocks; row++) {
        const torch_block *block = &pool->blocks[row];
        if ((block->flags & present) != present || !torch_idle(block))
            continue;
        *idle = segment_of(pool, block);
        idle->bytes = block->bytes;
        return row;
    }
    return MS_NONE;
}

void ms_torchview_log_snapshot(const ms_torch *pool)
{
    ms_ledger_note(pool, MS_TORCH_SNAPSHOT, 0,
                   ms_torchview_current(pool, MS_TORCH_ACTIVE_BYTES), MS_NONE);
}

/* ---- what must hold ------------------------------------------------------ */

static const char *check_neighbours(const ms_torch *pool, uint32_t row)
{
    const torch_block *block = &pool->blocks[row];
    if (block->bytes == 0)
        return "a block is empty";
    if (block->next == MS_NONE)
        return NULL;
    const torch_block *next = &pool->blocks[block->next];
    if (next->prev != row || (next->flags & TORCH_USED) == 0)
        return "neighbours are not linked both ways";
    if (next->address != block->address + block->bytes)
        return "blocks do not tile their segment";
    if (pool->rules == NULL &&
        (next->stream != block->stream || next->range != block->range))
        return "a segment has two owners";
    if (torch_idle(block) && torch_idle(next) &&
        ((block->flags ^ next->flags) & TORCH_MAPPED) == 0 &&
        (pool->rules == NULL || !pool->rules->apart(pool, row, block->next)))
        return "two idle neighbours are not merged";
    return NULL;
}

static const char *check_sets(const ms_torch *pool, uint32_t n_idle)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < 2 * pool->n_streams; i++) {
        const torch_freeset *set = pool->streams[i / 2].idle[i % 2];
        if (set == NULL)
            continue;
        uint64_t bytes = 0, address = 0;
        for (uint32_t row = ms_freeset_least(set, pool->blocks, 0);
             row != MS_NONE; row = ms_freeset_next(set, pool->blocks, row)) {
            const torch_block *block = &pool->blocks[row];
            if (block->bytes < bytes ||
                (block->bytes == bytes && block->address <= address))
                return "a set is out of order";
            bytes = block->bytes;
            address = block->address;
            n++;
        }
    }
    return n == n_idle ? NULL : "an idle block is in no set";
}

/* The one set of a heap, in whichever table it has its order. */
static const char *check_heap(const ms_torch *pool, uint32_t n_idle)
{
    const pool_heap *heap = pool->heap;
    const torch_block *blocks = heap->runs != NULL ? heap->runs : pool->blocks;
    uint64_t bytes = 0;
    uint32_t n = 0, row = ms_freeset_least(&heap->idle, blocks, 0);
    for (; row != MS_NONE; row = ms_freeset_next(&heap->idle, blocks, row)) {
        if (blocks[row].bytes < bytes)
            return "the set is out of order";
        if (blocks[row].bytes != pool->blocks[row].bytes)
            return "a run is not as its block";
        bytes = blocks[row].bytes;
        n++;
    }
    return n == n_idle ? NULL : "an idle block is not in the set";
}

const char *ms_torchview_check(const ms_torch *pool)
{
    uint64_t allocated = 0, active = 0, reserved = 0;
    uint32_t n_idle = 0;
    for (uint32_t i = 0; i < pool->n_blocks; i++) {
        const torch_block *block = &pool->blocks[i];
        if ((block->flags & TORCH_USED) == 0)
            continue;
        const char *wrong = check_neighbours(pool, i);
        if (wrong != NULL)
            return wrong;
        if ((block->flags & TORCH_MAPPED) == 0)
            continue;
        bool idle = torch_idle(block);
        reserved += block->bytes;
        n_idle += idle;
        active += idle ? 0 : block->bytes;
        allocated += (block->flags & TORCH_ALLOCATED) != 0 ? block->bytes : 0;
    }
    if (allocated != ms_torchview_current(pool, MS_TORCH_ALLOCATED_BYTES) ||
        active != ms_torchview_current(pool, MS_TORCH_ACTIVE_BYTES) ||
        reserved != ms_torchview_current(pool, MS_TORCH_RESERVED_BYTES) ||
        reserved != pool->reserved_bytes)
        return "the blocks do not add up to the statistics";
    return pool->rules == NULL ? check_sets(pool, n_idle)
                               : check_heap(pool, n_idle);
}
