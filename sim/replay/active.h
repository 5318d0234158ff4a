/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_ACTIVE_H
#define MS_SIM_ACTIVE_H

/* Private to replay.c: the active bytes of PyTorch's caching allocator.
 *
 * A block that the host frees while record_stream has noted other streams for
 * it is neither allocated nor free: the free records an event at the current
 * end of each of these streams, and an allocation that finds all of them past
 * completes it (c10/cuda/CUDACachingAllocator.cpp: free, insert_events,
 * process_events).  The host looks when it allocates, by its own clock, and
 * runs ahead of the device: what is active at a peak is more than what was in
 * use there. */

#include "sim/base/base.h"
#include "sim/nouns.h"

/* Fills active_peak_bytes of each rank and the raises, in host issue order.
 * Needs the timeline's end_ns. */
ms_err ms_active_book(const ms_plan *plan, const ms_machine *machine,
                      ms_arena *arena, ms_timeline *line, ms_fault *fault);

/* For requests.c: which frees wait (late[row] = 1; NULL: none does, or the
 * books are by device time) and, ascending by op, whose allocations find which
 * of them completed; some never are. */
typedef struct ms_active_seen {
    uint32_t row, op;
} ms_active_seen;
ms_err ms_active_list(const ms_timeline *line, const ms_machine *machine,
                      ms_arena *arena, uint8_t **late,
                      const ms_active_seen **seen, uint32_t *n,
                      ms_fault *fault);

#endif
