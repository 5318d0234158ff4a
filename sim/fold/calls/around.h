/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_AROUND_H
#define MS_SIM_AROUND_H

/* Private to sim/fold: what a call may read besides the cells of owners: a
 * replay in parts that is under way, queues, and the buffers of the program. */

#include "sim/expand/bind.h"
#include "sim/fold/ops/tape.h"

typedef struct ms_around {
    /* The first unit of the replay; MS_NONE: there is none. */
    uint32_t replay;
    bool replay_state; /* it has set the random state aside */
    bool side, limit;  /* there is a last copy of the side queue, one that let
                          go before the last */
    uint8_t side_stream;
    const ms_tape *tape; /* NULL: one stream */
    /* Of a RERUN: the stage and the unit of which is asked; else
     * MS_N_BIND_STAGES. */
    ms_bind_stage stage;
    uint32_t unit;
} ms_around;

/* Into the books: the replay before the owners' states, the rest behind
 * them. Faults: MS_ENOMEM. */
ms_err ms_around_put_replay(const ms_around *around, ms_cells *cells,
                            ms_fault *fault);
ms_err ms_around_put(const ms_around *around, const ms_question *question,
                     const ms_question_states *states, ms_cells *cells,
                     ms_fault *fault);

#endif
