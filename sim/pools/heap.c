/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What all heaps share: requests on the common ledger, segments. */
#include "sim/pools/heap.h"
#include "sim/pools/blocks/ledger.h"

#include <assert.h>
#include <string.h>

/* ---- segments ------------------------------------------------------------ */

/* How many segments begin at or below the address. */
static uint32_t count_to(const pool_heap *heap, uint64_t address)
{
    uint32_t low = 0, high = heap->n_segments;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (heap->segments[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static ms_err add_segment(ms_torch *pool, uint64_t address, uint64_t bytes,
                          ms_fault *fault)
{
    pool_heap *heap = pool->heap;
    heap->segments =
        ms_arena_grow(pool->arena, heap->segments, &heap->segments_capacity,
                      heap->n_segments + 1, sizeof *heap->segments);
    if (heap->segments == NULL)
        return ms_fail_nomem(fault);
    uint32_t at = count_to(heap, address);
    memmove(heap->segments + at + 1, heap->segments + at,
            (heap->n_segments - at) * sizeof *heap->segments);
    heap->segments[at] = (pool_segment){.address = address, .bytes = bytes};
    heap->n_segments++;
    ms_ledger_raise(pool, MS_TORCH_SEGMENT, true, 1);
    return MS_OK;
}

uint64_t ms_heap_left(const ms_torch *pool)
{
    uint64_t left = ms_vram_left(&pool->vram), allowed = 0;
    if (pool->limit_bytes > pool->reserved_bytes)
        allowed = pool->limit_bytes - pool->reserved_bytes;
    left = left < allowed ? left : allowed;
    return left / TORCH_ROUND_SEGMENT * TORCH_ROUND_SEGMENT;
}

void ms_heap_note_ends(ms_torch *pool, uint32_t row)
{
    if (pool->blocks[row].prev == MS_NONE)
        pool->heap->first = row;
    if (pool->blocks[row].next == MS_NONE)
        pool->heap->last = row;
}

/* An idle block at the end of a chain, or one of its own. */
static uint32_t add_block(ms_torch *pool, const torch_request *request,
                          uint64_t address, uint64_t bytes, uint32_t prev)
{
    uint32_t row = ms_ledger_take_row(pool);
    torch_block *block = &pool->blocks[row];
    block->address = address;
    block->bytes = bytes;
    block->prev = prev;
    block->stream = (uint16_t)request->stream;
    block->flags |= TORCH_LARGE | TORCH_MAPPED;
    if (prev != MS_NONE)
        pool->blocks[prev].next = row;
    pool->reserved_bytes += bytes;
    pool->device_allocs++;
    ms_ledger_raise(pool, MS_TORCH_RESERVED_BYTES, true, bytes);
    ms_heap_note_ends(pool, row);
    return row;
}

ms_err ms_heap_segment(ms_torch *pool, torch_request *request, uint64_t bytes,
                       uint32_t *row)
{
    uint64_t address;
    *row = MS_NONE;
    MS_TRY(ms_ledger_reserve(pool, 2, request->fault));
    MS_TRY(ms_vram_malloc(&pool->vram, pool->arena, bytes, &address,
                          request->fault));
    if (address == 0)
        return MS_OK;
    MS_TRY(add_segment(pool, address, bytes, request->fault));
    *row = add_block(pool, request, address, bytes, MS_NONE);
    ms_ledger_note(pool, MS_TORCH_SEGMENT_ALLOC, address, bytes,
                   request->stream);
    return MS_OK;
}

/* Addresses for all that the device has, so that the segment can grow. */
static ms_err begin_range(ms_torch *pool, torch_request *request,
                          uint64_t bytes)
{
    uint64_t address;
    MS_TRY(ms_vram_reserve(
        &pool->vram, pool->arena,
        heap_round_up(pool->vram.total_bytes, TORCH_ROUND_SEGMENT), &address,
        request->fault));
    assert(address != 0); /* a device is far smaller than the space */
    return add_segment(pool, address, bytes, request->fault);
}

/* The heap is one range of addresses that grows at its end; the first extension
 * makes it. */
ms_err ms_heap_extend(ms_torch *pool, torch_request *request, uint64_t bytes,
                      uint32_t *row)
{
    pool_heap *heap = pool->heap;
    uint32_t prev = MS_NONE;
    *row = MS_NONE;
    assert(bytes % TORCH_ROUND_SEGMENT == 0);
    if (bytes > ms_heap_left(pool))
        return MS_OK;
    MS_TRY(ms_ledger_reserve(pool, 2, request->fault));
    if (heap->n_segments == 0) {
        MS_TRY(begin_range(pool, request, bytes));
    } else {
        heap->segments[0].bytes += bytes;
        prev = heap->last;
    }
    uint64_t address =
        heap->segments[0].address + heap->segments[0].bytes - bytes;
    bool mapped = ms_vram_map(&pool->vram, address, bytes);
    assert(mapped);
    (void)mapped;
    *row = add_block(pool, request, address, bytes, prev);
    ms_ledger_note(pool, MS_TORCH_SEGMENT_MAP, address, bytes, request->stream);
    return MS_OK;
}

void ms_heap_release(ms_torch *pool, uint32_t segment)
{
    pool_heap *heap = pool->heap;
    const pool_segment gone = heap->segments[segment];
    ms_ledger_note(pool, MS_TORCH_SEGMENT_FREE, gone.address, gone.bytes,
                   pool->blocks[gone.row].stream);
    ms_ledger_leave_set(pool, gone.row);
    ms_ledger_drop_row(pool, gone.row);
    ms_vram_free(&pool->vram, gone.address, gone.bytes);
    pool->reserved_bytes -= gone.bytes;
    pool->device_frees++;
    heap->stats.touched_bytes -= gone.touched_bytes;
    ms_ledger_lower(pool, MS_TORCH_SEGMENT, true, 1);
    ms_ledger_lower(pool, MS_TORCH_RESERVED_BYTES, true, gone.bytes);
    memmove(heap->segments + segment, heap->segments + segment + 1,
            (--heap->n_segments - segment) * sizeof *heap->segments);
}

/* ---- requests ------------------------------------------------------------ */

static void note_touched(pool_heap *heap, const torch_block *block)
{
    pool_segment *segment = &heap->segments[count_to(heap, block->address) - 1];
    uint64_t touched_bytes = block->address + block->bytes - segment->address;
    if (touched_bytes > segment->touched_bytes) {
        heap->stats.touched_bytes += touched_bytes - segment->touched_bytes;
        segment->touched_bytes = touched_bytes;
    }
    if (block->bytes > heap->stats.largest_bytes)
        heap->stats.largest_bytes = block->bytes;
}

/* Before the request fails, the pool waits for the frees that other streams
 * hold up. */
static ms_err take(ms_torch *pool, torch_request *request)
{
    request->block = MS_NONE;
    MS_TRY(pool->rules->take(pool, request));
    if (request->block != MS_NONE || pool->n_events == 0)
        return MS_OK;
    pool->retries++;
    ms_torchstreams_wait(pool);
    return pool->rules->take(pool, request);
}

ms_err ms_heap_malloc(ms_torch *pool, uint64_t bytes, uint64_t stream,
                      uint32_t *block, ms_fault *fault)
{
    uint64_t most = 2 * MS_TORCH_MOST_BYTES;
    torch_request request = {
        .bytes = pool->rules->round(pool, bytes < most ? bytes : most),
        .large = true,
        .fault = fault};
    assert(bytes > 0);
    *block = MS_NONE;
    if (pool->n_events > 0)
        ms_torchstreams_process(pool);
    MS_TRY(ms_torchstreams_find(pool, stream, &request.stream, fault));
    pool->streams[request.stream].idle[true] = &pool->heap->idle;
    MS_TRY(ms_torch_prepare(pool, &request, stream));
    MS_TRY(take(pool, &request));
    if (request.block == MS_NONE) {
        pool->ooms++;
        ms_ledger_note(pool, MS_TORCH_OOM, ms_vram_left(&pool->vram),
                       request.bytes, request.stream);
        return MS_OK;
    }
    *block = request.block;
    pool->blocks[*block].stream = (uint16_t)request.stream;
    ms_ledger_book(pool, *block, bytes);
    note_touched(pool->heap, &pool->blocks[*block]);
    return MS_OK;
}
