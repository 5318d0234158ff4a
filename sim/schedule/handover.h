/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_HANDOVER_H
#define MS_SIM_HANDOVER_H

/* Private to sim/schedule: what stages on different ranks hand to each other.
 *
 * A handover is what a turn of one stage has made or changed and a turn of
 * another is the next to touch: the hidden state that the next stage's forward
 * reads, the gradient of it, which one backward after the other adds to.  What
 * is read over a skip connection goes straight from its maker to its reader. */

#include "sim/nouns.h"
#include "sim/schedule/schedule.h"

typedef struct ms_handover {
    uint32_t from, to; /* stages */
    uint32_t set;
    uint32_t relayed; /* of the set, what `from` has been handed itself: it
                         holds that from the beginning of its turn until it has
                         sent it */
    bool again;       /* the rank of `from` is handed the first of it again */
    bool returns;     /* ... any of it */
    bool backward;    /* of gradients, which backward or the half of the inputs
                         makes */
    bool local;       /* the stages are of one rank: an order, not a message */
} ms_handover;

typedef struct ms_handovers {
    ms_handover *all;
    uint32_t n, capacity;
    /* CSR per stage: the rows of all that go out of it, that come in. */
    uint32_t *out_at, *out, *in_at, *in;
} ms_handovers;

/* Sets are rows of the program's. */
ms_err ms_handover_find(const ms_graph *graph, const ms_schedule *schedule,
                        const uint32_t *stage_of, ms_arena *arena,
                        ms_program *program, ms_handovers *handovers,
                        ms_fault *fault);
/* Do turns of this kind make it, and read it? */
bool ms_handover_is_of(const ms_handover *handover, uint8_t kind);

/* Of what is handed over, for one micro-batch. */
uint64_t ms_handover_bytes(const ms_graph *graph, const ms_program *program,
                           const ms_handover *handover);

#endif
