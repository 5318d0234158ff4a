/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the torch pool does when no idle block serves: it collects what is old,
 * asks the device, gives cached segments back and asks again
 * (sim/pools/README.md 4, 7 and 9). */
#include "sim/pools/blocks/ledger.h"

/* ---- giving back --------------------------------------------------------- */

static ms_err not_whole(const ms_torch *pool, ms_fault *fault)
{
    return ms_fail(
        fault, MS_EINFEASIBLE, NULL,
        "keep max_split_size_mb as it was when the first block was made",
        "PyTorch %s would hand a part of a segment to cudaFree: "
        "max_split_size_mb was lowered while larger blocks were split",
        ms_torchconf_versions[pool->version]);
}

/* An idle block that is a whole segment, to cudaFree, which waits for all. */
static ms_err release(ms_torch *pool, uint32_t row, ms_fault *fault)
{
    const torch_block *block = &pool->blocks[row];
    bool large = (block->flags & TORCH_LARGE) != 0;
    if (torch_split(block))
        return not_whole(pool, fault);
    ms_ledger_note(pool, MS_TORCH_SEGMENT_FREE, block->address, block->bytes,
                   block->stream);
    ms_torchstreams_sync(pool, MS_NONE);
    ms_vram_free(&pool->vram, block->address, block->bytes);
    pool->reserved_bytes -= block->bytes;
    pool->device_frees++;
    ms_ledger_lower(pool, MS_TORCH_SEGMENT, large, 1);
    ms_ledger_lower(pool, MS_TORCH_RESERVED_BYTES, large, block->bytes);
    if (block->bytes >= pool->options.max_split_bytes)
        ms_ledger_bump(&pool->oversize_segments, false);
    ms_ledger_leave_set(pool, row);
    ms_ledger_drop_row(pool, row);
    return MS_OK;
}

/* Releases one stream's whole segments and lists its blocks in ranges. */
static ms_err release_set(ms_torch *pool, uint32_t stream, bool large,
                          uint32_t *n, ms_fault *fault)
{
    const torch_freeset *set = pool->streams[stream].idle[large];
    uint32_t row =
        set == NULL ? MS_NONE : ms_freeset_least(set, pool->blocks, 0);
    while (row != MS_NONE) {
        uint32_t next = ms_freeset_next(set, pool->blocks, row);
        const torch_block *block = &pool->blocks[row];
        if (block->range != MS_NONE) {
            pool->list =
                ms_arena_grow(pool->arena, pool->list, &pool->list_capacity,
                              *n + 1, sizeof *pool->list);
            if (pool->list == NULL)
                return ms_fail_nomem(fault);
            pool->list[(*n)++] = row;
        } else if (!torch_split(block)) {
            MS_TRY(release(pool, row, fault));
        }
        row = next;
    }
    return MS_OK;
}

static ms_err release_pool(ms_torch *pool, bool large, ms_fault *fault)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < pool->n_streams; i++)
        MS_TRY(release_set(pool, pool->by_handle[i], large, &n, fault));
    /* Unmapping changes the sets: hence the list. */
    for (uint32_t i = 0; i < n; i++)
        MS_TRY(ms_torchrange_unmap(pool, pool->list[i], fault));
    return MS_OK;
}

ms_err ms_torchgrow_release_all(ms_torch *pool, ms_fault *fault)
{
    ms_torchstreams_wait(pool);
    MS_TRY(release_pool(pool, true, fault));
    return release_pool(pool, false, fault);
}

/* ---- release_available --------------------------------------------------- */

static ms_err not_together(const ms_torch *pool, ms_fault *fault)
{
    return ms_fail(
        fault, MS_EINFEASIBLE, NULL,
        "leave max_split_size_mb out, or say version=2.11",
        "PyTorch %s stops here with an internal error: it would hand "
        "a block of an expandable segment to cudaFree",
        ms_torchconf_versions[pool->version]);
}

/* Since 2.11 blocks of ranges are passed over. */
static ms_err release_one(ms_torch *pool, uint32_t row, bool *released,
                          ms_fault *fault)
{
    *released = pool->blocks[row].range == MS_NONE;
    if (*released)
        return release(pool, row, fault);
    return pool->version < MS_TORCH_V2_11 ? not_together(pool, fault) : MS_OK;
}

/* The largest below, downwards, until they would be enough together. */
static ms_err release_several(ms_torch *pool, const torch_request *request,
                              uint64_t wanted, bool *enough)
{
    const torch_freeset *set =
        pool->streams[request->stream].idle[request->large];
    uint64_t sum = 0;
    uint32_t row = ms_freeset_last_below(set, pool->blocks, wanted, 0);
    while (row != MS_NONE && sum < wanted &&
           pool->blocks[row].bytes >= pool->options.max_split_bytes) {
        const torch_block *block = &pool->blocks[row];
        uint64_t bytes = block->bytes;
        uint32_t before =
            ms_freeset_last_below(set, pool->blocks, bytes, block->address);
        bool released;
        MS_TRY(release_one(pool, row, &released, request->fault));
        sum += released ? bytes : 0;
        row = before;
    }
    *enough = sum >= wanted;
    return MS_OK;
}

/* Oversize segments of the stream: one that would do, else several. */
static ms_err release_available(ms_torch *pool, const torch_request *request,
                                bool *enough)
{
    const torch_freeset *set =
        pool->streams[request->stream].idle[request->large];
    uint64_t most = pool->options.max_split_bytes, wanted = request->bytes;
    *enough = false;
    if (most == UINT64_MAX)
        return MS_OK;
    if (wanted < most)
        wanted = most;
    uint32_t row = ms_freeset_least(set, pool->blocks, wanted);
    if (row != MS_NONE &&
        (pool->version < MS_TORCH_V2_11 || pool->blocks[row].range == MS_NONE))
        return release_one(pool, row, enough, request->fault);
    return release_several(pool, request, wanted, enough);
}

/* ---- garbage collection -------------------------------------------------- */

static uint64_t age_of(const ms_torch *pool, const torch_block *block)
{
    return pool->searches[1] - block->mark;
}

typedef struct collection {
    double total_age;
    uint64_t reclaimed;
    uint32_t count;
    bool freed;
} collection;

static bool is_whole(const torch_block *block)
{
    return !torch_split(block);
}

static void add_up(const ms_torch *pool, collection *c)
{
    for (uint32_t i = 0; i < pool->n_streams; i++) {
        const torch_freeset *set = pool->streams[i].idle[1];
        uint32_t row =
            set == NULL ? MS_NONE : ms_freeset_least(set, pool->blocks, 0);
        for (; row != MS_NONE; row = ms_freeset_next(set, pool->blocks, row))
            if (is_whole(&pool->blocks[row])) {
                c->total_age += (double)age_of(pool, &pool->blocks[row]);
                c->count++;
            }
    }
}

static ms_err collect_set(ms_torch *pool, const torch_freeset *set,
                          double threshold, collection *c, ms_fault *fault)
{
    uint32_t row = ms_freeset_least(set, pool->blocks, 0);
    while (row != MS_NONE) {
        uint32_t next = ms_freeset_next(set, pool->blocks, row);
        const torch_block *block = &pool->blocks[row];
        uint64_t bytes = block->bytes;
        double age = (double)age_of(pool, block);
        bool old = is_whole(block) && age >= threshold, released;
        if (old) {
            MS_TRY(release_one(pool, row, &released, fault));
            if (released) {
                c->freed = true;
                c->reclaimed += bytes;
                c->total_age -= age;
                c->count--;
            }
        }
        row = next;
    }
    return MS_OK;
}

/* Each round frees whole segments that are at least as old as the average of
 * those left; it ends when enough is free or a round frees nothing
 * (garbage_collect_cached_blocks in CUDACachingAllocator.cpp). */
ms_err ms_torchgrow_collect(ms_torch *pool, ms_fault *fault)
{
    uint64_t most =
        (uint64_t)(pool->options.gc_threshold * (double)pool->limit_bytes);
    collection c = {.freed = true};
    if (pool->reserved_bytes <= most)
        return MS_OK;
    uint64_t target = pool->reserved_bytes - most;
    add_up(pool, &c);
    while (c.reclaimed < target && c.freed && c.count > 0) {
        double threshold = c.total_age / c.count;
        c.freed = false;
        for (uint32_t i = 0; i < pool->n_streams; i++) {
            const torch_freeset *set =
                pool->streams[pool->by_handle[i]].idle[1];
            if (set != NULL)
                MS_TRY(collect_set(pool, set, threshold, &c, fault));
        }
    }
    return MS_OK;
}

/* ---- new memory ---------------------------------------------------------- */

static ms_err cuda_malloc(ms_torch *pool, torch_request *request)
{
    uint64_t address, bytes = request->segment_bytes;
    MS_TRY(ms_vram_malloc(&pool->vram, pool->arena, bytes, &address,
                          request->fault));
    if (address == 0)
        return MS_OK;
    MS_TRY(ms_ledger_reserve(pool, 2, request->fault));
    request->block = ms_ledger_take_row(pool);
    torch_block *block = &pool->blocks[request->block];
    block->address = address;
    block->bytes = bytes;
    block->stream = (uint16_t)request->stream;
    block->flags |= TORCH_MAPPED;
    block->flags |= request->large ? TORCH_LARGE : 0;
    pool->reserved_bytes += bytes;
    pool->device_allocs++;
    ms_ledger_raise(pool, MS_TORCH_SEGMENT, request->large, 1);
    ms_ledger_raise(pool, MS_TORCH_RESERVED_BYTES, request->large, bytes);
    if (bytes >= pool->options.max_split_bytes)
        ms_ledger_bump(&pool->oversize_segments, true);
    ms_ledger_note(pool, MS_TORCH_SEGMENT_ALLOC, address, bytes,
                   request->stream);
    return MS_OK;
}

static ms_err new_memory(ms_torch *pool, torch_request *request)
{
    if (pool->limit_bytes != UINT64_MAX &&
        pool->reserved_bytes + request->segment_bytes > pool->limit_bytes)
        return MS_OK;
    if (pool->options.expandable)
        return ms_torchrange_take(pool, request);
    return cuda_malloc(pool, request);
}

ms_err ms_torchgrow_any(ms_torch *pool, torch_request *request)
{
    bool enough;
    MS_TRY(new_memory(pool, request));
    if (request->block != MS_NONE)
        return MS_OK;
    MS_TRY(release_available(pool, request, &enough));
    if (enough)
        MS_TRY(new_memory(pool, request));
    if (request->block != MS_NONE)
        return MS_OK;
    MS_TRY(ms_torchgrow_release_all(pool, request->fault));
    pool->retries++;
    return new_memory(pool, request);
}
