/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The common interface of the pools: each call goes to the pool of its kind. */
#include "sim/pools/heap.h"

const char *const ms_pool_types[] = {"torch", "bfc", "buddy", "contiguous",
                                     "arena"};

static const pool_rules *const rules[MS_POOL_N_TYPES] = {
    [MS_POOL_BFC] = &ms_bfc_rules,
    [MS_POOL_BUDDY] = &ms_buddy_rules,
    [MS_POOL_CONTIGUOUS] = &ms_contiguous_rules};

/* Nothing of PyTorch's options is a heap's. */
static ms_err open_heap(const ms_pool_setup *setup, ms_arena *arena,
                        ms_pool **pool, ms_fault *fault)
{
    ms_torch_setup ledger = setup->torch;
    pool_heap *heap = ms_arena_take(arena, 1, sizeof *heap);
    if (heap == NULL)
        return ms_fail_nomem(fault);
    ms_torchconf_init(&ledger.options);
    MS_TRY(ms_torch_new(&ledger, arena, pool, fault));
    heap->options = setup->heap;
    heap->first = heap->last = MS_NONE;
    ms_freeset_init(&heap->idle);
    (*pool)->rules = rules[setup->heap.kind];
    (*pool)->heap = heap;
    if (setup->heap.fraction > 0)
        ms_pool_set_fraction(*pool, setup->heap.fraction);
    return MS_OK;
}

ms_err ms_pool_new(const ms_pool_setup *setup, ms_arena *arena, ms_pool **pool,
                   ms_fault *fault)
{
    if (setup->heap.kind == MS_POOL_TORCH)
        return ms_torch_new(&setup->torch, arena, pool, fault);
    return open_heap(setup, arena, pool, fault);
}

ms_pool_type ms_pool_kind_of(const ms_pool *pool)
{
    return pool->heap == NULL ? MS_POOL_TORCH
                              : (ms_pool_type)pool->heap->options.kind;
}

ms_err ms_pool_malloc(ms_pool *pool, uint64_t bytes, uint64_t stream,
                      uint32_t *block, ms_fault *fault)
{
    if (pool->rules == NULL)
        return ms_torch_malloc(pool, bytes, stream, block, fault);
    return ms_heap_malloc(pool, bytes, stream, block, fault);
}

void ms_pool_free(ms_pool *pool, uint32_t block)
{
    ms_torch_free(pool, block);
}

ms_err ms_pool_empty_cache(ms_pool *pool, ms_fault *fault)
{
    return pool->rules == NULL ? ms_torch_empty_cache(pool, fault) : MS_OK;
}

ms_err ms_pool_set_conf(ms_pool *pool, const char *conf, const char *where,
                        ms_fault *fault)
{
    return pool->rules == NULL ? ms_torch_set_conf(pool, conf, where, fault)
                               : MS_OK;
}

void ms_pool_set_fraction(ms_pool *pool, double fraction)
{
    if (pool->rules == NULL)
        ms_torch_set_fraction(pool, fraction);
    else
        pool->limit_bytes =
            (uint64_t)(fraction * (double)pool->vram.total_bytes);
}

/* ---- what is seen -------------------------------------------------------- */

uint64_t ms_pool_least(const ms_pool *pool,
                       const ms_torch_segment_view *segment, uint64_t bytes,
                       uint64_t stream)
{
    bool small;
    if (ms_pool_kind_of(pool) == MS_POOL_CONTIGUOUS)
        return pool->reserved_bytes -
                           ms_torchview_current(pool, MS_TORCH_ACTIVE_BYTES) >=
                       bytes
                   ? 1
                   : UINT64_MAX;
    if (pool->rules != NULL)
        return pool->rules->round(pool, bytes);
    bytes = ms_torch_rounded(pool, bytes, &small);
    return segment->small == small && segment->stream == stream ? bytes
                                                                : UINT64_MAX;
}

uint64_t ms_pool_allowed(const ms_pool *pool)
{
    uint64_t bytes = ms_torchview_limit(pool);
    if (pool->heap == NULL)
        return bytes;
    const ms_heap_options *options = &pool->heap->options;
    if (options->limit_bytes > 0 && options->limit_bytes < bytes)
        bytes = options->limit_bytes;
    if (options->size_bytes > 0 && options->size_bytes < bytes)
        bytes = options->size_bytes;
    return bytes;
}

void ms_pool_tell(const ms_pool *pool, ms_pool_stats *stats)
{
    *stats = pool->heap != NULL ? pool->heap->stats : (ms_pool_stats){0};
    for (uint32_t row = 0; row < pool->n_blocks; row++) {
        const torch_block *block = &pool->blocks[row];
        if ((block->flags & TORCH_USED) != 0 &&
            (block->flags & TORCH_MAPPED) != 0 && torch_idle(block) &&
            block->bytes > stats->largest_idle_bytes)
            stats->largest_idle_bytes = block->bytes;
    }
}
