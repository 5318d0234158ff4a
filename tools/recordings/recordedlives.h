/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_RECORDEDLIVES_H
#define MS_RECORDEDLIVES_H

/* A recorded history as lives of blocks: what was alive when, by PyTorch's
 * memory_allocated(), which falls when a free is requested.
 *
 * A worked example: 2 blocks at the start, then an allocation and the free of
 * the first: states 1 and 2 are those of the blocks, 3 has three, 4 two. */

#include "plots/page/htmlpage.h"
#include "sim/pools/history/alloctrace.h"

/* A block that is alive when a recording starts. */
typedef struct ms_recordedlives_held {
    uint64_t address, bytes, stream; /* bytes: as requested, where known */
    uint32_t segment, block;         /* which comes next */
    uint64_t at;                     /* its place in the segment */
} ms_recordedlives_held;
/* The next of them, from one of zeros on; false: there are no more. */
bool ms_recordedlives_next(const ms_recording *recording,
                           ms_recordedlives_held *held);
/* lives in the order of from; *n_states: the last state.  Frees of what was
 * never allocated, and requests that ran out of memory, are passed over. */
ms_err ms_recordedlives_find(const ms_recording *recording, ms_arena *arena,
                             ms_pagelife **lives, uint32_t *n,
                             uint32_t *n_states, ms_fault *fault);

#endif
