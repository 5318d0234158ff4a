/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_SEGMENTS_H
#define MS_POLICIES_SEGMENTS_H

/* Private to policies/checkpoint: the blocks of a model, and which of them are
 * replayed together.
 *
 *     ms_segments blocks;
 *     MS_TRY(ms_segments_find(context, &blocks, fault));
 *     MS_TRY(ms_segments_cut(context, &blocks, fault));
 *     ms_segments_drop(graph, &blocks, keep);
 *
 * checkpoint:every=2 of GPT-2: blocks h.0 to h.11, segment 0 0 1 1 ... 5 5;
 * the units of embedding, last norm, head and loss are in no block. */

#include "policies/common/policy.h"

typedef struct ms_segments {
    uint32_t n;
    uint32_t *of_unit; /* block of a unit, or MS_NONE */
    const char **name; /* of a block */
    uint32_t *segment; /* of a block; MS_NONE: open, it saves all */
} ms_segments;

/* The graph's blocks, numbered as they first appear; where it has none, each
 * unit before the loss is one.  All are open.  MS_EUSAGE: there are none. */
ms_err ms_segments_find(const ms_policy_context *context, ms_segments *blocks,
                        ms_fault *fault);
/* As the policy's values say. */
ms_err ms_segments_cut(const ms_policy_context *context, ms_segments *blocks,
                       ms_fault *fault);
/* Each block becomes a segment. */
void ms_segments_all(ms_segments *blocks);
/* The segments go into keep.  Where a unit of no block lies within a segment
 * that is two segments: what is replayed together are neighbours. */
void ms_segments_drop(const ms_graph *graph, const ms_segments *blocks,
                      ms_keep *keep);

#endif
