/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_KNOWNTAPE_H
#define MS_SIM_KNOWNTAPE_H

/* Private to sim/fold: tapes of programs that come again, call by call the
 * same, with other numbers of the graph.  Which ops there are, on which
 * streams, and what waits for what, is then known; only numbers are put in,
 * span by span. Tapes are large: one is kept when its program comes for the
 * second time.
 *
 * A worked example: a sweep over policies and batch sizes writes the program of
 * zero:2 once for each batch.  The first is walked, the second walked and kept,
 * and of all others the ops get their times and bytes.
 *
 *     known = ms_knowntape_find(&tapes, &program, context);
 *     if (known != NULL && known->n_steps > 0)
 *         effect = ms_knowntape_tell(known, &learner, &program);
 *     else ... walk it ...
 *         MS_TRY(ms_knowntape_see(&tapes, &walk, fault)); */

#include "sim/fold/calls/callwalk.h"

typedef struct ms_knowntape {
    uint64_t hash; /* of the program */
    ms_program program;
    uint32_t context; /* ms_learner.context */
    ms_tape tape;
    uint32_t *steps, n_steps; /* the answers of its calls; none: it has come
                                 once */
} ms_knowntape;

typedef struct ms_knowntapes {
    ms_arena arena;
    ms_knowntape *one;
    uint32_t n, capacity;
} ms_knowntapes;

/* NULL: it has not come before. */
ms_knowntape *ms_knowntape_find(ms_knowntapes *tapes, const ms_program *program,
                                uint32_t context);
/* What has just been walked, with its steps noted, has come.  Faults:
 * MS_ENOMEM.
 */
ms_err ms_knowntape_see(ms_knowntapes *tapes, const ms_callwalk *walk,
                        ms_fault *fault);
/* Puts the numbers of the learner's graph in; what the calls do to the level.
 */
ms_effect ms_knowntape_tell(ms_knowntape *known, ms_learner *learner,
                            const ms_program *program);
/* The learner has forgotten everything. */
void ms_knowntape_forget(ms_knowntapes *tapes);

#endif
