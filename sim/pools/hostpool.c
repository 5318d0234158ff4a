/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/pools/hostpool.h"

uint64_t ms_hostpool_round(const ms_hostpool_options *options, uint64_t bytes)
{
    uint64_t block = 1;
    if (options->max_round_bytes > 0 && bytes > options->max_round_bytes)
        return bytes;
    while (block < bytes && block <= UINT64_MAX / 2)
        block *= 2;
    return block < bytes ? bytes : block;
}

/* ---- kinds of blocks ----------------------------------------------------- */

static uint32_t find_kind(const ms_hostpool *pool, uint64_t bytes, uint64_t key)
{
    uint32_t k = 0;
    while (k < pool->n_kinds &&
           (pool->kinds[k].bytes != bytes || pool->kinds[k].key != key))
        k++;
    return k;
}

static ms_err kind_of(ms_hostpool *pool, uint64_t bytes, uint32_t *kind,
                      ms_fault *fault)
{
    uint64_t block = ms_hostpool_round(&pool->options, bytes);
    uint64_t key = pool->keyed ? bytes : 0;
    *kind = find_kind(pool, block, key);
    if (*kind < pool->n_kinds)
        return MS_OK;
    pool->kinds = ms_arena_grow(pool->arena, pool->kinds, &pool->kinds_capacity,
                                pool->n_kinds + 1, sizeof *pool->kinds);
    if (pool->kinds == NULL)
        return ms_fail_nomem(fault);
    pool->kinds[pool->n_kinds++] = (ms_hostpool_kind){block, key, 0};
    return MS_OK;
}

/* ---- what waits ---------------------------------------------------------- */

/* No stream uses the block any more: it is kept, or goes back to CUDA. */
static void end_use(ms_hostpool *pool, uint32_t kind)
{
    ms_hostpool_kind *it = &pool->kinds[kind];
    uint64_t most = pool->options.max_cached_bytes;
    pool->active_bytes -= it->bytes;
    if (most > 0 && it->bytes > most)
        pool->allocated_bytes -= it->bytes;
    else
        it->idle++;
}

/* In the order in which blocks were freed: the first whose streams have not
 * passed it holds up those behind it (CachingHostAllocator.h, process_events).
 */
static void process(ms_hostpool *pool, uint64_t now_ns)
{
    while (pool->first_wait < pool->n_waits &&
           pool->waits[pool->first_wait].ready_ns <= now_ns)
        end_use(pool, pool->waits[pool->first_wait++].kind);
}

/* ---- requests and frees -------------------------------------------------- */

static void raise_to(uint64_t *peak, uint64_t value)
{
    if (value > *peak)
        *peak = value;
}

ms_err ms_hostpool_take(ms_hostpool *pool, uint64_t bytes, uint64_t now_ns,
                        ms_fault *fault)
{
    uint32_t kind;
    if (bytes == 0)
        return MS_OK;
    process(pool, now_ns);
    MS_TRY(kind_of(pool, bytes, &kind, fault));
    ms_hostpool_kind *it = &pool->kinds[kind];
    if (it->idle > 0)
        it->idle--;
    else
        pool->allocated_bytes += it->bytes;
    pool->active_bytes += it->bytes;
    raise_to(&pool->allocated_peak_bytes, pool->allocated_bytes);
    raise_to(&pool->active_peak_bytes, pool->active_bytes);
    return MS_OK;
}

ms_err ms_hostpool_give(ms_hostpool *pool, uint64_t bytes, uint64_t ready_ns,
                        ms_fault *fault)
{
    uint32_t kind;
    if (bytes == 0)
        return MS_OK;
    MS_TRY(kind_of(pool, bytes, &kind, fault));
    if (ready_ns == 0) { /* no stream has used it */
        end_use(pool, kind);
        return MS_OK;
    }
    pool->waits = ms_arena_grow(pool->arena, pool->waits, &pool->waits_capacity,
                                pool->n_waits + 1, sizeof *pool->waits);
    if (pool->waits == NULL)
        return ms_fail_nomem(fault);
    pool->waits[pool->n_waits++] = (ms_hostpool_wait){ready_ns, kind};
    return MS_OK;
}
