/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TORCH_H
#define MS_TORCH_H

/* The CUDA caching allocator of PyTorch ("native" backend), decision for
 * decision: which block serves a request, when memory is asked of the device
 * and given back, what every statistic of torch.cuda.memory_stats says.  Rules:
 * sim/pools/README.md 1 to 13 and 15, read from
 * c10/cuda/CUDACachingAllocator.cpp at 1.13, 2.1, 2.4 and 2.11.
 *
 * Nouns.  A segment is one answer of cudaMalloc, or one address range that
 * grows by pages ("expandable").  Blocks tile a segment; neighbours are linked.
 * A block is allocated; or pending: freed by the host while another stream
 * still uses it; or idle: cached, free to serve its stream; or, in a range,
 * unmapped: addresses without memory.  There are two pools, small (requests up
 * to 1 MiB) and large; each keeps idle blocks by (stream, size, address).
 *
 * Invariants: the blocks of a segment lie end to end; no two neighbours are
 * both idle (or both unmapped); allocated <= active <= reserved; a block serves
 * only the stream that it was allocated on.
 *
 * A worked example: 3 MiB is asked for twice.
 *
 *     ms_torch_setup setup;
 *     ms_torch *pool;
 *     uint32_t a, b;
 *     ms_torch_setup_init(&setup, UINT64_C(80) << 30);
 *     MS_TRY(ms_torch_new(&setup, &arena, &pool, fault));
 *     MS_TRY(ms_torch_malloc(pool, 3 << 20, 0, &a, fault));
 *
 * No idle block: 3 MiB is between 1 and 10 MiB, so a segment of 20 MiB comes
 * from the device; its front is block a, the rest an idle block of 17 MiB.
 *
 *     MS_TRY(ms_torch_malloc(pool, 3 << 20, 0, &b, fault));
 *     ms_torch_free(pool, a);
 *
 * Block b is cut from the front of the 17 MiB.  a is idle now: it cannot merge,
 * b lies behind it.  Reserved is 20 MiB, allocated 3, inactive_split 17.
 *
 * Units: bytes, addresses of the device.  Streams are named by any number, as
 * CUDA's handles; 0 is the default stream.  A block is named by a row that is
 * used again after it was freed.  Deterministic; no clock.
 *
 * Faults: MS_ENOMEM, this host's memory; MS_EINFEASIBLE, the point at which
 * PyTorch itself stops with an internal error.  After either fault the pool
 * must not be used.  That the device is out of memory is an answer, no fault.
 */

#include "sim/pools/hostpool.h"

/* ---- versions, options --------------------------------------------------- */

/* Releases whose rules differ; each holds up to the next (2.4: up to 2.6). */
typedef enum ms_torch_version {
    MS_TORCH_V1_13,
    MS_TORCH_V2_1,
    MS_TORCH_V2_4,
    MS_TORCH_V2_11,
    MS_TORCH_N_VERSIONS
} ms_torch_version;
extern const char *const ms_torchconf_versions[MS_TORCH_N_VERSIONS]; /* "2.4" */

#define MS_TORCH_INTERVALS 16u /* of sizes: from 1 MiB, by powers of two */

/* PYTORCH_CUDA_ALLOC_CONF, read (torchconf.c has the table). */
typedef struct ms_torch_options {
    uint64_t max_split_bytes;     /* UINT64_MAX: none */
    uint64_t max_slack_bytes;     /* max_non_split_rounding_mb */
    uint64_t large_segment_bytes; /* segment of 1 to 10 MiB, and page */
    uint64_t bypass_bytes;        /* 1.13: above it no roundup; UINT64_MAX */
    double gc_threshold;          /* 0: none */
    double fraction;              /* per_process_memory_fraction; 0: none */
    uint32_t divisions[MS_TORCH_INTERVALS]; /* roundup_power2_divisions */
    bool expandable;
    ms_hostpool_options pinned; /* of host memory, which is no pool of these */
} ms_torch_options;

void ms_torchconf_init(ms_torch_options *options);
/* Reads "key:value,...", over what options hold, as PyTorch of that version
 * does, and refuses what it refuses.  where, err: of the fault (MS_EUSAGE where
 * a command line gave the options, MS_EINPUT where a file did). */
ms_err ms_torchconf_parse(const char *conf, const char *where, ms_err err,
                          ms_torch_version version, ms_torch_options *options,
                          ms_fault *fault);
/* The same at run time (MS_EINPUT): max_split_size, divisions and the threshold
 * go back to their defaults first, as torch.cuda.memory._set_allocator_settings
 * does. */
ms_err ms_torchconf_change(const char *conf, const char *where,
                           ms_torch_version version, ms_torch_options *options,
                           ms_fault *fault);

/* One row per option, for help and tests. */
typedef struct ms_torchconf_row {
    const char *name, *values, *help;
    uint8_t kind, since, until; /* versions, both included */
} ms_torchconf_row;
extern const ms_torchconf_row ms_torchconf_rows[];
extern const uint32_t ms_torchconf_n_rows;

/* ---- the device ---------------------------------------------------------- */

/* Which address the device answers with.  GIVEN: the next of a list, so that a
 * recorded history can be followed (ms_torch_answer). */
typedef enum ms_torch_policy {
    MS_TORCH_DOWN,     /* each below the last */
    MS_TORCH_BUMP,     /* each above the last */
    MS_TORCH_FIRSTFIT, /* the lowest gap */
    MS_TORCH_GIVEN
} ms_torch_policy;
extern const char *const ms_torch_policies[]; /* "down", "bump", "firstfit" */
#define MS_TORCH_N_POLICIES 3u

typedef enum ms_torch_action {
    MS_TORCH_ALLOC,
    MS_TORCH_FREE_REQUESTED,
    MS_TORCH_FREE_COMPLETED,
    MS_TORCH_SEGMENT_ALLOC,
    MS_TORCH_SEGMENT_FREE,
    MS_TORCH_SEGMENT_MAP,
    MS_TORCH_SEGMENT_UNMAP,
    MS_TORCH_SNAPSHOT,
    MS_TORCH_OOM,  /* address: bytes free on the device */
    MS_TORCH_MOVE, /* a block that was at `from`; not PyTorch's (pool.h) */
    MS_TORCH_N_ACTIONS
} ms_torch_action;
extern const char *const ms_torch_actions[MS_TORCH_N_ACTIONS];

/* One row of PyTorch's device_traces, without its time. */
typedef struct ms_torch_entry {
    uint64_t address, bytes, stream;
    uint64_t from; /* MOVE */
    ms_torch_action action;
} ms_torch_entry;
typedef void (*ms_torch_log)(void *of, const ms_torch_entry *entry);

typedef struct ms_torch_setup {
    ms_torch_version version;
    ms_torch_policy policy;
    uint64_t total_bytes; /* of the device */
    uint64_t base_bytes;  /* of it, taken by others */
    ms_torch_options options;
    ms_torch_log log; /* NULL: no log is kept */
    void *log_of;
} ms_torch_setup;

#define MS_TORCH_MOST_BYTES (UINT64_C(1) << 50) /* of a device, a request */
#define MS_TORCH_MOST_STREAMS 4096u

/* The newest version, addresses DOWN, no options. */
void ms_torch_setup_init(ms_torch_setup *setup, uint64_t total_bytes);
/* The same pool on a device on which a step that reserves some times
 * needed_bytes fits, without a limit of the process.  The device is not as
 * large as may be: expandable segments take as many addresses as it has bytes,
 * for each stream. */
void ms_torch_setup_unbound(ms_torch_setup *setup, uint64_t needed_bytes);

/* ---- torch.c: the pool --------------------------------------------------- */

typedef struct ms_torch ms_torch;

ms_err ms_torch_new(const ms_torch_setup *setup, ms_arena *arena,
                    ms_torch **pool, ms_fault *fault);

/* *block: MS_NONE where the device is out of memory, after all that PyTorch
 * tries.  bytes > 0; a request over MS_TORCH_MOST_BYTES is out of memory. */
ms_err ms_torch_malloc(ms_torch *pool, uint64_t bytes, uint64_t stream,
                       uint32_t *block, ms_fault *fault);
/* What a request becomes, and which pool serves it. */
uint64_t ms_torch_rounded(const ms_torch *pool, uint64_t bytes, bool *small);
/* The block must be allocated.  It stays active until the streams that
 * ms_torchstreams_record named are past what they have to do now. */
void ms_torch_free(ms_torch *pool, uint32_t block);

/* torchstreams.c: another stream uses the block (Tensor.record_stream). */
ms_err ms_torchstreams_record(ms_torch *pool, uint32_t block, uint64_t stream,
                              ms_fault *fault);
/* A stream has so many more pieces of work queued, or finishes the oldest
 * (UINT64_MAX: all). */
ms_err ms_torchstreams_queue(ms_torch *pool, uint64_t stream, uint64_t n,
                             ms_fault *fault);
ms_err ms_torchstreams_finish(ms_torch *pool, uint64_t stream, uint64_t n,
                              ms_fault *fault);

ms_err ms_torch_empty_cache(ms_torch *pool, ms_fault *fault);
/* 0 <= fraction <= 1. */
void ms_torch_set_fraction(ms_torch *pool, double fraction);
/* Another process takes or gives; more than there is left is cut. */
void ms_torch_set_base(ms_torch *pool, uint64_t bytes);
ms_err ms_torch_set_conf(ms_torch *pool, const char *conf, const char *where,
                         ms_fault *fault);
void ms_torch_reset_peaks(ms_torch *pool);

/* ---- what a recorded history needs --------------------------------------- */

/* The list is read while it lasts and not copied; n = 0: the device refuses.
 * Of an entry only action (a SEGMENT_...), address and bytes count. */
void ms_torch_answer(ms_torch *pool, const ms_torch_entry *list, uint32_t n);
/* How much of it was used. */
uint32_t ms_torch_answers_taken(const ms_torch *pool);
/* torchseed.c: a cudaMalloc'd segment as it stands at the start, tiled by n
 * pieces; requested_bytes: UINT64_MAX where the block is idle.  rows gets the
 * block of each. */
typedef struct ms_torch_origin {
    uint64_t address, stream;
    bool small;
} ms_torch_origin;
typedef struct ms_torch_piece {
    uint64_t bytes, requested_bytes;
} ms_torch_piece;
ms_err ms_torchseed_segment(ms_torch *pool, const ms_torch_origin *origin,
                            const ms_torch_piece *pieces, uint32_t n,
                            uint32_t *rows, ms_fault *fault);
/* A free whose completion is told, not computed: asked, then completed. */
void ms_torch_free_later(ms_torch *pool, uint32_t block);
void ms_torch_free_now(ms_torch *pool, uint32_t block);

/* ---- torchview.c: statistics, snapshots ---------------------------------- */

typedef enum ms_torch_measure {
    MS_TORCH_ALLOCATION, /* counts */
    MS_TORCH_SEGMENT,
    MS_TORCH_ACTIVE,
    MS_TORCH_INACTIVE_SPLIT,
    MS_TORCH_ALLOCATED_BYTES,
    MS_TORCH_RESERVED_BYTES,
    MS_TORCH_ACTIVE_BYTES,
    MS_TORCH_INACTIVE_SPLIT_BYTES,
    MS_TORCH_REQUESTED_BYTES, /* not in 1.13 */
    MS_TORCH_N_MEASURES
} ms_torch_measure;
extern const char *const ms_torchview_measures[MS_TORCH_N_MEASURES];

enum { MS_TORCH_ALL, MS_TORCH_SMALL, MS_TORCH_LARGE, MS_TORCH_N_SCOPES };
extern const char *const ms_torchview_scopes[MS_TORCH_N_SCOPES]; /* "all" */

/* allocated, freed: the sums of increases and decreases. */
typedef struct ms_torch_stat {
    uint64_t current, peak, allocated, freed;
} ms_torch_stat;

typedef struct ms_torch_stats {
    ms_torch_stat of[MS_TORCH_N_MEASURES][MS_TORCH_N_SCOPES];
    ms_torch_stat oversize_allocations, oversize_segments;
    uint64_t retries, ooms, syncs, device_allocs, device_frees;
    uint64_t max_split_bytes;   /* UINT64_MAX: none */
    uint64_t device_used_bytes; /* this process, in whole granules */
} ms_torch_stats;
void ms_torchview_stats(const ms_torch *pool, ms_torch_stats *stats);
/* One number of them, at once. */
uint64_t ms_torchview_current(const ms_torch *pool, ms_torch_measure measure);
uint64_t ms_torchview_peak(const ms_torch *pool, ms_torch_measure measure);
uint64_t ms_torchview_retries(const ms_torch *pool);
uint64_t ms_torchview_ooms(const ms_torch *pool);
uint64_t ms_torchview_device_used(const ms_torch *pool);
/* This process's bound on reserved bytes; UINT64_MAX: none. */
uint64_t ms_torchview_limit(const ms_torch *pool);

typedef enum ms_torch_state {
    MS_TORCH_ACTIVE_ALLOCATED,
    MS_TORCH_ACTIVE_PENDING,
    MS_TORCH_INACTIVE
} ms_torch_state;
extern const char *const ms_torchview_states[]; /* as a snapshot spells them */

typedef struct ms_torch_block_view {
    uint64_t address, bytes;
    uint64_t requested_bytes; /* idle: of its last use */
    ms_torch_state state;
} ms_torch_block_view;

/* By address; of a range each mapped run is one. */
typedef struct ms_torch_segment_view {
    uint64_t address, bytes, stream;
    uint64_t allocated_bytes, active_bytes, requested_bytes;
    const ms_torch_block_view *blocks;
    uint32_t n_blocks;
    bool small, expandable;
} ms_torch_segment_view;

typedef struct ms_torch_snapshot {
    const ms_torch_segment_view *segments;
    uint32_t n_segments;
} ms_torch_snapshot;
ms_err ms_torchview_snapshot(const ms_torch *pool, ms_arena *arena,
                             ms_torch_snapshot *snapshot, ms_fault *fault);
/* The first idle block from that row on as a segment of its own, blocks NULL;
 * returns its row, MS_NONE: there is none. */
uint32_t ms_torchview_idle(const ms_torch *pool, uint32_t row,
                           ms_torch_segment_view *idle);
/* The entry that PyTorch logs where one is taken. */
void ms_torchview_log_snapshot(const ms_torch *pool);
ms_torch_block_view ms_torchview_block(const ms_torch *pool, uint32_t block);
/* Does the structure hold what the head of this file promises?  For tests;
 * walks everything.  NULL: yes, else what does not. */
const char *ms_torchview_check(const ms_torch *pool);

#endif
