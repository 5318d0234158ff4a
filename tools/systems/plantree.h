/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_PLANTREE_H
#define MS_TOOLS_PLANTREE_H

/* Sweeps as checkpoints within checkpoints: what runs forward is a list of
 * pieces, neighbouring columns that are saved or checkpointed; one that is
 * checkpointed runs, when it is made again, as a list of pieces in turn.
 *
 *     forward   SSSi>>>>>i>>>>>SSS      0-2 saved
 *               .........rrrrrR...      3-8 again: ...
 *               .............R....      9-14 again: 9-13 again: ..., 14 saved
 */

#include "tools/systems/sweeps.h"

typedef struct ms_plantree {
    uint32_t first, last; /* columns */
    bool again;
    struct ms_plantree *pieces; /* of one that is made again; n */
    uint32_t n;
} ms_plantree;

#define MS_PLANTREE_DEEP 64u

/* The whole of it: tree->pieces is what runs forward.  MS_EUSAGE: more than
 * MS_PLANTREE_DEEP checkpoints lie in each other. */
ms_err ms_plantree_find(const ms_sweeps *sweeps, ms_arena *arena,
                        ms_plantree *tree, ms_fault *fault);

#endif
