/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_SEGMENTPLAN_H
#define MS_POLICIES_SEGMENTPLAN_H

/* Private to policies/checkpoint: segments of a chain as a plan
 * (policies/solve/chain.h), and segments that are replayed as segments.
 *
 * A worked example: blocks 1 to 4 and the loss, nested=2/1:
 *
 *     CHECKPOINT 1, PASS 2, CHECKPOINT 3, PASS 4, SAVE 5, BACKWARD 5
 *     CHECKPOINT 3, SAVE 4, BACKWARD 4, SAVE 3, BACKWARD 3
 *     CHECKPOINT 1, SAVE 2, BACKWARD 2, SAVE 1, BACKWARD 1
 *
 * Chen et al. 2016 (arXiv 1604.06174), section 4.3: k parts a level are the
 * memory g(n) = k + g(n / (k + 1)). */

#include "policies/checkpoint/chains/chainparts.h"

typedef struct ms_segmentplan {
    const uint32_t *segment; /* per stage [1 .. n]; MS_NONE: it saves all */
    uint32_t parts;          /* a replay is cut into so many; 0: not */
    const char *sizes;       /* "12/4/1": into segments of so many stages, each
                                level by the next number; NULL: not */
} ms_segmentplan;

ms_err ms_segmentplan_write(const ms_chain *chain, const ms_segmentplan *how,
                            ms_arena *arena, ms_chain_plan *plan,
                            ms_fault *fault);
/* Of part k segments of so many blocks; open: the last one saves all. */
ms_err ms_segmentplan_equal(const ms_chainparts *parts, uint32_t k,
                            uint32_t blocks, bool open, ms_arena *arena,
                            ms_chain_plan *plan, ms_fault *fault);
/* checkpoint:nested and checkpoint:recursive as calls. */
ms_err ms_segmentplan_place(const ms_policy_context *context, bool early_stop,
                            ms_program *program, ms_fault *fault);

#endif
