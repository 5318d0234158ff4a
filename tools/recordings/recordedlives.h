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

/* lives in the order of from; *n_states: the last state.  Frees of what was
 * never allocated, and requests that ran out of memory, are passed over. */
ms_err ms_recordedlives_find(const ms_recording *recording, ms_arena *arena,
                             ms_pagelife **lives, uint32_t *n,
                             uint32_t *n_states, ms_fault *fault);

#endif
