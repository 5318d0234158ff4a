/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_HOSTPOOL_H
#define MS_HOSTPOOL_H

/* PyTorch's allocator of pinned host memory (ATen/core/CachingHostAllocator.h,
 * rules of 2.6 and later).  It asks CUDA for blocks of a power of two, never
 * cuts them, and keeps what is freed for requests of the same power; a freed
 * block waits until the streams that used it have passed that point, in the
 * order in which blocks were freed.  What it owns never shrinks.
 *
 * A worked example: 2.25 GiB are asked for twice, one after the other.
 *
 *     ms_hostpool pool = {.arena = &arena};
 *     MS_TRY(ms_hostpool_take(&pool, bytes, 0, fault));      a block of 4 GiB
 *     MS_TRY(ms_hostpool_give(&pool, bytes, 500, fault));    used until 500 ns
 *     MS_TRY(ms_hostpool_take(&pool, bytes, 400, fault));    another: 8 GiB
 *
 * At 500 ns or later the last line would have found the first block.
 *
 * Keyed, it is Megatron's pool above it (fine_grained_activation_offload.py):
 * tensors are kept by shape and type, here by their bytes, each a block of the
 * allocator's.
 *
 * Units: bytes, ns of one clock.  Fault: MS_ENOMEM. */

#include "sim/base/base.h"

/* As PYTORCH_CUDA_ALLOC_CONF has them, in bytes; 0: no limit, the default. */
typedef struct ms_hostpool_options {
    uint64_t max_round_bytes;  /* pinned_max_round_threshold_mb: what is larger
                                  is not rounded */
    uint64_t max_cached_bytes; /* pinned_max_cached_size_mb: a larger block goes
                                  back when it is free */
} ms_hostpool_options;

/* What a request takes. */
uint64_t ms_hostpool_round(const ms_hostpool_options *options, uint64_t bytes);

/* Blocks of one size that may serve each other's requests. */
typedef struct ms_hostpool_kind {
    uint64_t bytes, key; /* key: of a keyed pool what is asked for; else 0 */
    uint32_t idle;
} ms_hostpool_kind;

typedef struct ms_hostpool_wait {
    uint64_t ready_ns;
    uint32_t kind;
} ms_hostpool_wait;

/* {.arena = ..., .options = ..., .keyed = ...} is empty; the rest is read
 * only.  As torch.cuda.host_memory_stats has them: allocated is what the pool
 * owns, active what is handed out or waits. */
typedef struct ms_hostpool {
    ms_arena *arena;
    ms_hostpool_options options;
    bool keyed;
    uint64_t allocated_bytes, active_bytes;
    uint64_t allocated_peak_bytes, active_peak_bytes;
    ms_hostpool_kind *kinds;
    uint32_t n_kinds, kinds_capacity;
    ms_hostpool_wait *waits; /* [first, n): freed and not ready */
    uint32_t first_wait, n_waits, waits_capacity;
} ms_hostpool;

ms_err ms_hostpool_take(ms_hostpool *pool, uint64_t bytes, uint64_t now_ns,
                        ms_fault *fault);
/* Frees what was asked for with so many bytes; no stream uses it from ready_ns
 * on. */
ms_err ms_hostpool_give(ms_hostpool *pool, uint64_t bytes, uint64_t ready_ns,
                        ms_fault *fault);

#endif
