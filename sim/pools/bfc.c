/* SPDX-License-Identifier: GPL-3.0-or-later */
/* TensorFlow's BFC allocator (sim/pools/README.md 16; read from
 * bfc_allocator.cc, 010f3edc): best fit with coalescing over regions.  Its bins
 * of sizes are a way to find the smallest idle block that is large enough, the
 * lowest of several; so is the set here. */
#include "sim/pools/blocks/ledger.h"
#include "sim/pools/heap.h"

#define QUANTUM UINT64_C(256)
#define LEAST_REGION (2 * TORCH_MIB)
#define MOST_SLACK (128 * TORCH_MIB)
#define BACK_OFF 0.9f /* in single precision, as there */

static uint64_t round_bytes(const ms_torch *pool, uint64_t bytes)
{
    (void)pool;
    return heap_round_up(bytes, QUANTUM);
}

/* ---- regions ------------------------------------------------------------- */

/* Once, at the first request. */
static void set_limit(ms_torch *pool)
{
    pool_heap *heap = pool->heap;
    const ms_heap_options *options = &heap->options;
    uint64_t limit = ms_heap_left(pool);
    if (options->limit_bytes > 0)
        limit = options->limit_bytes;
    else if (options->fraction > 0)
        limit = pool->limit_bytes;
    heap->stats.limit_bytes = limit;
    if (options->allow_growth && limit > LEAST_REGION)
        limit = LEAST_REGION;
    heap->region_bytes = heap_round_up(limit, QUANTUM);
}

static uint64_t available(const ms_torch *pool)
{
    uint64_t limit = pool->heap->stats.limit_bytes;
    if (limit > pool->limit_bytes)
        limit = pool->limit_bytes;
    return limit > pool->reserved_bytes ? limit - pool->reserved_bytes : 0;
}

/* The device refused a region: the pool then asks for less and less, down to
 * the request itself.  It does so once in its life.  (Where rounding up undoes
 * a step TensorFlow would not end.) */
static ms_err back_off(ms_torch *pool, torch_request *request, uint64_t bytes,
                       uint32_t *row)
{
    while (*row == MS_NONE && !pool->heap->backed_off) {
        uint64_t less =
            heap_round_up((uint64_t)((float)bytes * BACK_OFF), QUANTUM);
        if (less < request->bytes || less == bytes)
            break;
        bytes = less;
        MS_TRY(ms_heap_segment(pool, request, bytes, row));
    }
    pool->heap->backed_off = true;
    return MS_OK;
}

/* One more region, if the limit and the device allow it. */
static ms_err extend(ms_torch *pool, torch_request *request, bool *done)
{
    pool_heap *heap = pool->heap;
    uint64_t left = available(pool) / QUANTUM * QUANTUM;
    bool larger = false;
    uint32_t row;
    *done = false;
    if (request->bytes > left)
        return MS_OK;
    for (; request->bytes > heap->region_bytes; larger = true)
        heap->region_bytes *= 2;
    uint64_t bytes = heap->region_bytes < left ? heap->region_bytes : left;
    MS_TRY(ms_heap_segment(pool, request, bytes, &row));
    if (row == MS_NONE)
        MS_TRY(back_off(pool, request, bytes, &row));
    if (row == MS_NONE)
        return MS_OK;
    if (!larger) /* else it has doubled for this request already */
        heap->region_bytes *= 2;
    ms_ledger_join_set(pool, row);
    *done = true;
    return MS_OK;
}

/* ---- collection ---------------------------------------------------------- */

static pool_segment *segment_at(pool_heap *heap, uint64_t address)
{
    uint32_t i = 0;
    while (heap->segments[i].address != address)
        i++;
    return &heap->segments[i];
}

/* The regions without a used block; each is one idle block. */
static uint64_t find_empty(ms_torch *pool)
{
    pool_heap *heap = pool->heap;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < heap->n_segments; i++)
        heap->segments[i].row = MS_NONE;
    for (uint32_t row = 0; row < pool->n_blocks; row++) {
        const torch_block *block = &pool->blocks[row];
        if ((block->flags & TORCH_USED) == 0 || torch_split(block) ||
            !torch_idle(block))
            continue;
        segment_at(heap, block->address)->row = row;
        bytes += block->bytes;
    }
    return bytes;
}

/* Gives empty regions back, if that can be enough. */
static bool collect(ms_torch *pool, const torch_request *request)
{
    pool_heap *heap = pool->heap;
    if (heap->options.no_collection)
        return false;
    uint64_t empty_bytes = find_empty(pool);
    if (empty_bytes == 0 || request->bytes > available(pool) + empty_bytes)
        return false;
    for (uint32_t i = 0; i < heap->n_segments;)
        if (heap->segments[i].row != MS_NONE)
            ms_heap_release(pool, i);
        else
            i++;
    return true;
}

/* ---- requests ------------------------------------------------------------ */

/* A block that is less than twice as large as the request, and by less than
 * MOST_SLACK larger, is handed out whole. */
static bool find(ms_torch *pool, torch_request *request)
{
    uint32_t row =
        ms_freeset_least(&pool->heap->idle, pool->blocks, request->bytes);
    if (row == MS_NONE)
        return false;
    ms_ledger_leave_set(pool, row);
    request->block = row;
    uint64_t bytes = pool->blocks[row].bytes;
    if (bytes >= 2 * request->bytes || bytes - request->bytes >= MOST_SLACK) {
        request->block = ms_ledger_cut(pool, row, request->bytes);
        ms_ledger_join_set(pool, row);
    }
    return true;
}

static ms_err take(ms_torch *pool, torch_request *request)
{
    bool done;
    if (find(pool, request))
        return MS_OK;
    if (pool->heap->region_bytes == 0)
        set_limit(pool);
    if (pool->heap->region_bytes == 0)
        return MS_OK; /* the device has nothing at all */
    MS_TRY(extend(pool, request, &done));
    if (!done && collect(pool, request))
        MS_TRY(extend(pool, request, &done));
    if (done)
        find(pool, request);
    return MS_OK;
}

static void give(ms_torch *pool, uint32_t row)
{
    ms_ledger_merge(pool, row, pool->blocks[row].next);
    ms_ledger_merge(pool, row, pool->blocks[row].prev);
    ms_ledger_join_set(pool, row);
}

static bool apart(const ms_torch *pool, uint32_t row, uint32_t next)
{
    (void)pool;
    (void)row;
    (void)next;
    return false;
}

const pool_rules ms_bfc_rules = {round_bytes, take, give, apart};
