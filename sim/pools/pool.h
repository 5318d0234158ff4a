/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POOL_H
#define MS_POOL_H

/* Memory pools by kind, behind one interface: a pool is whatever hands out
 * addresses of a device's memory.  Rules and sources: sim/pools/README.md.
 *
 *     torch       PyTorch's caching allocator (torch.h)
 *     bfc         TensorFlow's: best fit with coalescing (bfc.c)
 *     buddy       powers of two, halved and joined (buddy.c)
 *     contiguous  DeepSpeed's: one buffer that is defragmented (contiguous.c)
 *
 * Nouns.  A pool is a ledger and rules.  The ledger is the same for all: blocks
 * that tile segments, streams and the frees that wait for them, statistics, the
 * device; it is ms_torch's, and what torch.h says of streams (ms_torchstreams_)
 * and views (ms_torchview_) holds for every pool.  Rules are a row of a table
 * (pool.c): what a size becomes, which block serves and how it is cut, when
 * memory comes and goes.  Pools that are not torch's are heaps: every stream
 * takes from the same blocks, and what torch tells apart (small and large,
 * inactive_split) is 0 for them; all they hold counts as large.
 *
 * Invariants, whatever the kind: blocks of a segment lie end to end; what is
 * allocated never overlaps; requested <= active, allocated <= active <=
 * reserved; the same requests give the same addresses.  A block is named by a
 * row, which stays while the block lives; its address stays, too, but in
 * contiguous, where any request may move blocks (MS_TORCH_MOVE in the log).
 *
 * A worked example: 700 bytes, 300 bytes; the first is freed.
 *
 *     ms_pool_setup setup = {.heap = {.kind = MS_POOL_BUDDY}};
 *     ms_torch_setup_init(&setup.torch, UINT64_C(1) << 30);
 *     MS_TRY(ms_pool_new(&setup, &arena, &pool, fault));
 *     MS_TRY(ms_pool_malloc(pool, 700, 0, &a, fault));
 *
 * The arena begins with 2 MiB, which is halved until 1024 bytes are at its
 * front: block a.  Idle blocks are of 1 KiB, 2 KiB, ... 1 MiB.
 *
 *     MS_TRY(ms_pool_malloc(pool, 300, 0, &b, fault));
 *     ms_pool_free(pool, a);
 *
 * b is the front half of the idle 1 KiB: 512 bytes at offset 1024.  a cannot
 * join its buddy, which is cut.  Allocated are 512, requested 300, reserved 2
 * MiB.
 *
 * Units: bytes.  Faults: those of torch.h; MS_EUSAGE, options (poolconf.c). */

#include "sim/pools/torch/torch.h"

typedef struct ms_torch ms_pool;

/* ---- kinds (pool.c) and their options (poolconf.c) ----------------------- */

typedef enum ms_pool_type {
    MS_POOL_TORCH,
    MS_POOL_BFC,
    MS_POOL_BUDDY,
    MS_POOL_CONTIGUOUS,
    MS_POOL_N_TYPES,
    MS_POOL_ARENA = MS_POOL_N_TYPES /* no pool: a plan of all offsets ahead
                                       (placement.h), for pooled.h */
} ms_pool_type;
extern const char *const ms_pool_types[MS_POOL_N_TYPES + 1];

/* What a heap is made with; {0} is torch. */
typedef struct ms_heap_options {
    uint8_t kind;       /* ms_pool_type */
    uint8_t order;      /* arena: ms_placement_rule; N_RULES: the lowest plan of
                           all of these */
    bool allow_growth;  /* bfc: regions as they are needed */
    bool no_collection; /* bfc: regions once taken are kept */
    double fraction;    /* bfc: of the device; 0: not said */
    uint64_t limit_bytes; /* bfc: of all regions; 0: what the device has */
    uint64_t size_bytes;  /* buddy, contiguous: of the one segment; 0: as
                             large as it has to be */
    uint64_t least_bytes; /* buddy: of a block; 0: 512 */
} ms_heap_options;

typedef struct ms_poolconf_row {
    uint8_t kind;
    const char *name, *values, *help;
} ms_poolconf_row;
extern const ms_poolconf_row ms_poolconf_rows[];
extern const uint32_t ms_poolconf_n_rows;

/* Reads one "name=value" of the kind's.  where: of the fault. */
ms_err ms_poolconf_set(ms_heap_options *options, const char *name,
                       const char *value, const char *where, ms_fault *fault);

/* ---- pool.c: the door ---------------------------------------------------- */

/* torch: of every kind the device, the policy of its addresses and the log;
 * version and options are PyTorch's. */
typedef struct ms_pool_setup {
    ms_torch_setup torch;
    ms_heap_options heap;
} ms_pool_setup;

ms_err ms_pool_new(const ms_pool_setup *setup, ms_arena *arena, ms_pool **pool,
                   ms_fault *fault);
ms_pool_type ms_pool_kind_of(const ms_pool *pool);

/* As ms_torch_malloc and ms_torch_free, which are for torch alone. */
ms_err ms_pool_malloc(ms_pool *pool, uint64_t bytes, uint64_t stream,
                      uint32_t *block, ms_fault *fault);
void ms_pool_free(ms_pool *pool, uint32_t block);
/* The least idle block of the segment that could serve the request as the pool
 * stands; UINT64_MAX: none. */
uint64_t ms_pool_least(const ms_pool *pool,
                       const ms_torch_segment_view *segment, uint64_t bytes,
                       uint64_t stream);

/* torch.cuda.empty_cache, and options at run time: heaps have neither, nothing
 * happens. */
ms_err ms_pool_empty_cache(ms_pool *pool, ms_fault *fault);
ms_err ms_pool_set_conf(ms_pool *pool, const char *conf, const char *where,
                        ms_fault *fault);
/* 0 <= fraction <= 1: of the device, what the pool may ask for from now on. */
void ms_pool_set_fraction(ms_pool *pool, double fraction);

/* The bytes of the device to which the user has limited the pool; UINT64_MAX:
 * all. */
uint64_t ms_pool_allowed(const ms_pool *pool);

/* What heaps tell besides; of torch all is 0 but largest_idle_bytes. */
typedef struct ms_pool_stats {
    uint64_t largest_idle_bytes;
    uint64_t largest_bytes; /* block that was ever handed out */
    uint64_t touched_bytes; /* of the segments that are held, up to the highest
                               address that was ever handed out in each */
    uint64_t limit_bytes;   /* bfc: of its regions */
    uint64_t moves, copies,
        moved_bytes; /* contiguous: blocks that moved, the
                        copies that this took, their bytes */
} ms_pool_stats;
void ms_pool_tell(const ms_pool *pool, ms_pool_stats *stats);

#endif
