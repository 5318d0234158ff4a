/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_ADDRESSMAP_H
#define MS_ADDRESSMAP_H

/* Where the blocks of a pool lie, and when: the record behind the figure
 * "address".
 *
 * Nouns.  A box is a block in use: bytes [address, address + bytes) over the
 * instants [begin, end).  A block that the host has freed while another stream
 * still uses it goes on as a second box, which waits.  A span is memory that
 * the pool holds: one answer of cudaMalloc, or pages of a range.  Instants are
 * ns of a step or operations of a trace, whatever the caller counts.
 *
 * Invariants: boxes do not overlap, nor do spans; a box lies in the union of
 * the spans at every instant of its life; begin < end; what has not ended ends
 * at UINT64_MAX.
 *
 * A worked example: 3 MiB are asked for at 5 and freed at 9, in a new pool
 * whose first segment is of 20 MiB.
 *
 *     setup.log = ms_addressmap_log, setup.log_of = &map;
 *     MS_TRY(ms_torch_new(&setup, &arena, &pool, fault));
 *     MS_TRY(ms_addressmap_start(&map, NULL, &arena, fault));
 *     map.now = 5;
 *     MS_TRY(ms_torch_malloc(pool, 3 << 20, 0, &block, fault));
 *     view = ms_torchview_block(pool, block);
 *     ms_addressmap_take(&map, view.address, view.bytes, 0);
 *     map.now = 9;
 *     ms_torch_free(pool, block);
 *     MS_TRY(ms_addressmap_close(&map, fault));
 *
 * One span of 20 MiB from 5 to UINT64_MAX, in it a box of 3 MiB from 5 to 9;
 * at the peak 3 MiB are live, of 20 MiB reserved. */

#include "sim/pools/torch/torch.h"

typedef struct ms_address_box {
    uint64_t address, bytes;
    uint64_t begin, end;
    uint32_t made, gone; /* the changes that did it, counted */
    uint32_t of;         /* whose: the caller's number */
    bool waits;          /* freed, and still in use by another stream */
} ms_address_box;

typedef struct ms_address_span {
    uint64_t address, bytes;
    uint64_t begin, end;
    bool is_paged; /* pages of a range, not a segment */
} ms_address_span;

typedef struct ms_address_slot { /* box MS_NONE: empty */
    uint64_t address;
    uint32_t box;
} ms_address_slot;

typedef struct ms_addressmap {
    ms_address_box *boxes;
    ms_address_span *spans;
    uint32_t n_boxes, n_spans;
    uint64_t reserved_peak_bytes;
    /* When most was live, that is, in boxes that do not wait. */
    struct ms_address_peak {
        uint64_t live_bytes, active_bytes, reserved_bytes, at;
        uint32_t change; /* a box b was live then: made <= change < gone */
    } peak;
    bool descends; /* the device mostly answers below what it gave before */

    uint64_t now; /* the caller's to set: the instant of what comes */

    /* Of the recorder. */
    ms_arena *arena;
    uint32_t boxes_capacity, spans_capacity, slots_capacity, n_slots;
    uint32_t oldest; /* spans before it have ended */
    ms_address_slot *slots;
    uint32_t changes;
    uint64_t live_bytes, active_bytes, reserved_bytes;
    uint64_t last_segment;
    uint32_t n_up, n_down; /* segments above and below the one before */
    bool is_on, failed;
} ms_addressmap;

/* Begins with the segments of a pool; the caller adds their blocks with
 * ms_addressmap_take, if they are to be shown.  NULL: the pool is empty.  Until
 * then the log only sees which way addresses go. */
ms_err ms_addressmap_start(ms_addressmap *map,
                           const ms_torch_snapshot *snapshot, ms_arena *arena,
                           ms_fault *fault);
/* A block was handed out, or is from before. */
void ms_addressmap_take(ms_addressmap *map, uint64_t address, uint64_t bytes,
                        uint32_t of);
/* The pool's log: frees, segments, pages.  of: the map. */
void ms_addressmap_log(void *of, const ms_torch_entry *entry);
/* MS_ENOMEM where it ran out of memory on the way. */
ms_err ms_addressmap_close(ms_addressmap *map, ms_fault *fault);

#endif
