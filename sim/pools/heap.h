/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_HEAP_H
#define MS_HEAP_H

/* The inside of the pools that are not torch's (pool.h), for the files of
 * sim/pools/ only.  The ledger is ms_torch (ledger.h); all streams' sets of
 * idle blocks are one; every block is of the large pool.
 *
 *     heap.c        requests, segments, what is seen
 *     bfc.c         rules of each
 *     buddy.c
 *     contiguous.c */

#include "sim/pools/pool.h"
#include "sim/pools/torch/torchpool.h"

typedef struct pool_rules {
    uint64_t (*round)(const ms_torch *pool, uint64_t bytes);
    /* Finds a block of request->bytes, out of its set and cut to size; leaves
     * request->block MS_NONE where there is none and the device has none. */
    ms_err (*take)(ms_torch *pool, torch_request *request);
    /* A block is idle now: it joins its neighbours and a set. */
    void (*give)(ms_torch *pool, uint32_t row);
    /* May these stay apart though both are idle? */
    bool (*apart)(const ms_torch *pool, uint32_t row, uint32_t next);
} pool_rules;
extern const pool_rules ms_bfc_rules, ms_buddy_rules, ms_contiguous_rules;

typedef struct pool_segment {
    uint64_t address, bytes, touched_bytes;
    uint32_t row; /* bfc.c: of the block that is all of it */
} pool_segment;

typedef struct pool_heap {
    ms_heap_options options;
    torch_freeset idle;
    pool_segment *segments; /* by address */
    uint32_t n_segments, segments_capacity;
    uint32_t first, last; /* of the last segment: rows at its ends */
    ms_pool_stats stats;

    /* bfc */
    uint64_t region_bytes; /* of the next */
    bool backed_off;       /* the device refused before */

    /* contiguous: idle blocks by (bytes, place in the table of runs), which
     * stands where a block has its address */
    torch_block *runs;
    uint32_t runs_capacity;
    uint64_t n_places;
} pool_heap;

/* ---- heap.c -------------------------------------------------------------- */

static inline uint64_t heap_round_up(uint64_t bytes, uint64_t quantum)
{
    return (bytes + quantum - 1) / quantum * quantum;
}

/* What the device and the limit leave, in whole granules of the device. */
uint64_t ms_heap_left(const ms_torch *pool);
/* A segment from the device as one idle block in no set; *row = MS_NONE:
 * refused.  Two rows are reserved. */
ms_err ms_heap_segment(ms_torch *pool, torch_request *request, uint64_t bytes,
                       uint32_t *row);
/* The one segment, which lies at the front of a range, gets so many bytes (in
 * granules) more at its end; with none yet it begins. */
ms_err ms_heap_extend(ms_torch *pool, torch_request *request, uint64_t bytes,
                      uint32_t *row);
void ms_heap_release(ms_torch *pool, uint32_t segment);
/* The row may be at an end of the segment now. */
void ms_heap_note_ends(ms_torch *pool, uint32_t row);

ms_err ms_heap_malloc(ms_torch *pool, uint64_t bytes, uint64_t stream,
                      uint32_t *block, ms_fault *fault);

#endif
