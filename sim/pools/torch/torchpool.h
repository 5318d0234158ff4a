/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TORCHPOOL_H
#define MS_TORCHPOOL_H

/* The inside of the torch pool, shared by the files of sim/pools/ only.
 *
 *     ledger.c       rows, sets and statistics, on which all others build
 *     torch.c        requests and frees: search, split
 *     torchgrow.c    new memory; giving it back: retries, collection
 *     torchrange.c   expandable ranges: pages mapped and unmapped
 *     torchstreams.c streams, deferred frees
 *     torchconf.c    options
 *     torchview.c    statistics and snapshots
 *     freeset.c      idle blocks by (size, address)
 *     vram.c         the device: bytes and addresses
 *     torchseed.c    a pool that begins as a recorded one stood
 *
 * and by the heaps (heap.h), whose ledger it is too.
 *
 * Blocks are rows of one table that moves when it grows: no pointer to a block
 * is held over ms_ledger_reserve. */

#include "sim/pools/torch/torch.h"

#define TORCH_KIB (UINT64_C(1) << 10)
#define TORCH_MIB (UINT64_C(1) << 20)
#define TORCH_QUANTUM UINT64_C(512)          /* of sizes; least remainder */
#define TORCH_SMALL_MOST TORCH_MIB           /* the small pool's, rounded */
#define TORCH_SMALL_SEGMENT (2 * TORCH_MIB)  /* and the small pool's page */
#define TORCH_LARGE_SEGMENT (20 * TORCH_MIB) /* unless an option says so */
#define TORCH_OWN_SEGMENT (10 * TORCH_MIB)   /* from here a segment each */
#define TORCH_ROUND_SEGMENT (2 * TORCH_MIB)  /* rounded to this; granule */

/* ---- blocks -------------------------------------------------------------- */

enum { /* torch_block.flags */
       TORCH_ALLOCATED = 1u,
       TORCH_MAPPED = 2u, /* always, but in ranges */
       TORCH_LARGE = 4u,
       TORCH_LATER = 8u, /* ms_torch_free_later */
       TORCH_USED = 16u  /* the row is a block, not a spare */
};

/* One cache line.  events: recorded and not yet seen done; uses: streams noted
 * since it was allocated; mark: the search counter when it became idle. */
typedef struct torch_block {
    uint64_t address, bytes, requested_bytes, mark;
    uint32_t prev, next;  /* neighbours in the segment */
    uint32_t left, right; /* in the tree of its set; left: next spare row */
    uint32_t uses;        /* row of nodes, or MS_NONE */
    uint32_t range;       /* row of ranges, or MS_NONE */
    uint32_t events;
    uint16_t stream;
    uint16_t flags;
} torch_block;

/* ---- freeset.c: ordered sets of blocks ----------------------------------- */

/* Blocks by (size, address), in classes of sizes: eight per power of two, each
 * a tree; a bit for each class that is not empty. */
#define FREESET_CLASSES 512u
typedef struct torch_freeset {
    uint64_t used[FREESET_CLASSES / 64];
    uint32_t root[FREESET_CLASSES];
} torch_freeset;

void ms_freeset_init(torch_freeset *set);
void ms_freeset_insert(torch_freeset *set, torch_block *blocks, uint32_t row);
void ms_freeset_remove(torch_freeset *set, torch_block *blocks, uint32_t row);
/* The first block of at least so many bytes, or MS_NONE. */
uint32_t ms_freeset_least(const torch_freeset *set, const torch_block *blocks,
                          uint64_t bytes);
/* In order; MS_NONE at the ends.  last_below: of fewer than so many bytes. */
uint32_t ms_freeset_next(const torch_freeset *set, const torch_block *blocks,
                         uint32_t row);
uint32_t ms_freeset_last_below(const torch_freeset *set,
                               const torch_block *blocks, uint64_t bytes,
                               uint64_t address);
/* Trees by address alone, for unmapped blocks. */
void ms_freeset_tree_insert(uint32_t *root, torch_block *blocks, uint32_t row);
void ms_freeset_tree_remove(uint32_t *root, torch_block *blocks, uint32_t row);
uint32_t ms_freeset_tree_after(uint32_t root, const torch_block *blocks,
                               uint64_t address); /* the first at or above */

/* ---- vram.c: the device -------------------------------------------------- */

typedef struct vram_span {
    uint64_t address, bytes;
} vram_span;

/* Addresses that are taken, in [floor, ceiling): ascending or, where fresh ones
 * are taken from above, descending, so that these come at the end. */
typedef struct vram_space {
    uint64_t floor, ceiling, next;
    uint64_t quantum;
    ms_torch_policy policy;
    bool descends;
    uint32_t n, capacity;
    vram_span *spans;
} vram_space;

typedef struct torch_vram {
    uint64_t total_bytes, base_bytes, used_bytes; /* used: by this process */
    vram_space segments, ranges;
    bool given; /* addresses come from a list */
    const ms_torch_entry *answers;
    uint32_t n_answers, at_answer;
} torch_vram;

void ms_vram_init(torch_vram *vram, const ms_torch_setup *setup);
/* cudaMalloc; *address = 0: refused. */
ms_err ms_vram_malloc(torch_vram *vram, ms_arena *arena, uint64_t bytes,
                      uint64_t *address, ms_fault *fault);
void ms_vram_free(torch_vram *vram, uint64_t address, uint64_t bytes);
/* A segment that is there at the start. */
ms_err ms_vram_seed(torch_vram *vram, ms_arena *arena, uint64_t address,
                    uint64_t bytes, ms_fault *fault);
/* cuMemAddressReserve; *address = 0: none. */
ms_err ms_vram_reserve(torch_vram *vram, ms_arena *arena, uint64_t bytes,
                       uint64_t *address, ms_fault *fault);
void ms_vram_release(torch_vram *vram, uint64_t address);
/* Whole pages at address, all or none; false: refused. */
bool ms_vram_map(torch_vram *vram, uint64_t address, uint64_t bytes);
void ms_vram_unmap(torch_vram *vram, uint64_t bytes);
uint64_t ms_vram_left(const torch_vram *vram);

/* ---- the pool ------------------------------------------------------------ */

typedef struct torch_node { /* of a list: a use's stream, an event's block */
    uint64_t position;      /* the event is done when the stream got there */
    uint32_t row, next;
} torch_node;

typedef struct torch_stream {
    uint64_t handle;
    uint64_t queued, done;  /* pieces of work, from the beginning */
    uint32_t first, last;   /* events, oldest first */
    torch_freeset *idle[2]; /* small, large; NULL: never used */
    uint32_t unmapped[2];   /* trees */
} torch_stream;

typedef struct torch_range {
    uint64_t address, bytes, page_bytes;
    uint32_t next; /* spare row */
} torch_range;

typedef struct torch_tally {
    uint64_t current[2], up[2]; /* small, large */
    uint64_t peak[3];           /* small, large, all */
} torch_tally;

/* heap.h: what a pool that is not torch's has besides. */
struct pool_rules;
struct pool_heap;

struct ms_torch {
    const struct pool_rules *rules; /* NULL: torch's own, which are here */
    struct pool_heap *heap;
    ms_torch_version version;
    ms_torch_options options;
    ms_arena *arena;
    ms_torch_log log;
    void *log_of;
    torch_vram vram;
    uint64_t limit_bytes; /* UINT64_MAX: none */
    uint64_t reserved_bytes;
    uint64_t searches[2]; /* the clock of ages */
    uint32_t n_events;    /* in all queues */

    torch_block *blocks;
    uint32_t n_blocks, blocks_capacity, spare_block, n_spare;
    torch_node *nodes;
    uint32_t n_nodes, nodes_capacity, spare_node;
    torch_stream *streams;
    uint32_t n_streams, streams_capacity;
    uint32_t *by_handle; /* rows of streams, ascending by handle */
    uint32_t by_handle_capacity;
    uint32_t last_stream;
    torch_range *ranges;
    uint32_t n_ranges, ranges_capacity, spare_range;
    uint32_t *list; /* scratch: blocks to unmap */
    uint32_t list_capacity;

    torch_tally tally[MS_TORCH_N_MEASURES];
    ms_torch_stat oversize_allocations, oversize_segments;
    uint64_t retries, ooms, syncs, device_allocs, device_frees;
};

/* What malloc looks for, and what it found. */
typedef struct torch_request {
    uint64_t bytes; /* rounded */
    uint64_t segment_bytes;
    uint32_t stream; /* row */
    bool large;
    uint32_t block; /* MS_NONE: not yet */
    ms_fault *fault;
} torch_request;

static inline bool torch_idle(const torch_block *block)
{
    return (block->flags & (TORCH_ALLOCATED | TORCH_LATER)) == 0 &&
           block->events == 0 && block->uses == MS_NONE;
}

static inline bool torch_split(const torch_block *block)
{
    return block->prev != MS_NONE || block->next != MS_NONE;
}

/* torch.c */
/* The row of the request's stream, its set, two spare rows. */
ms_err ms_torch_prepare(ms_torch *pool, torch_request *request,
                        uint64_t stream);

/* torchstreams.c */
/* Any but the stream that was found last. */
ms_err ms_torchstreams_search(ms_torch *pool, uint64_t handle, uint32_t *row,
                              ms_fault *fault);
static inline ms_err ms_torchstreams_find(ms_torch *pool, uint64_t handle,
                                          uint32_t *row, ms_fault *fault)
{
    *row = pool->last_stream;
    if (pool->n_streams > 0 && pool->streams[*row].handle == handle)
        return MS_OK;
    return ms_torchstreams_search(pool, handle, row, fault);
}
void ms_torchstreams_defer(ms_torch *pool, uint32_t block);
void ms_torchstreams_process(ms_torch *pool); /* events that are done */
void ms_torchstreams_wait(ms_torch *pool);    /* for all events */
void ms_torchstreams_sync(ms_torch *pool, uint32_t stream);  /* MS_NONE: all */
void ms_torchstreams_forget(ms_torch *pool, uint32_t block); /* its uses */

/* torchgrow.c */
ms_err ms_torchgrow_collect(ms_torch *pool, ms_fault *fault);
ms_err ms_torchgrow_any(ms_torch *pool, torch_request *request);
ms_err ms_torchgrow_release_all(ms_torch *pool, ms_fault *fault);

/* torchrange.c */
ms_err ms_torchrange_take(ms_torch *pool, torch_request *request);
ms_err ms_torchrange_unmap(ms_torch *pool, uint32_t block, ms_fault *fault);

#endif
