/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_TURNPAIRS_H
#define MS_SIM_TURNPAIRS_H

/* Private to sim/expand: which calls of a rank are the two turns of a pair that
 * runs side by side (ms_run_call.side).
 *
 * A worked example: rank 0 has a forward of micro-batch 7 in calls 40 to 43, a
 * backward of micro-batch 3 in calls 44 to 49 and a send in call 50: at call 40
 * the pair is {{40, 44}, {44, 50}}. */

#include "sim/program.h"

typedef struct ms_turnpair {
    uint32_t first[2], end[2]; /* calls of the forward, of the backward; end may
                                  be MS_NONE */
} ms_turnpair;

/* Does a pair begin with the rank's call i?  next: per call the next one of its
 * rank, or MS_NONE.  Only turns that run units and hold and drop what these
 * make: those among whose calls others stand (a replay, a gather, a reduction)
 * run one after the other. */
bool ms_turnpairs_at(const ms_program *program, const uint32_t *next,
                     uint32_t i, ms_turnpair *pair);

#endif
