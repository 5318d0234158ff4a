/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_TURNTIMES_H
#define MS_SIM_TURNTIMES_H

/* When a rank of a pipeline takes its turns.
 *
 * A worked example, two stages, two micro-batches, rank 1 of 1F1B: its turns
 * are 1F0 1B0 1F1 1B1, and
 *
 *     MS_TRY(ms_turntimes_measure(&line, &program, 1, arena, &turns, &n,
 *                                 fault));
 *     turns[1].kind == MS_TURN_BACKWARD, .stage == 1, .micro_batch == 0,
 *     .weight_ns of its time are gradients of weights;
 *     turns[4].kind == MS_TURNTIMES_STEP    the optimizer's
 */

#include "sim/nouns.h"
#include "sim/schedule/schedule.h"

#define MS_TURNTIMES_STEP MS_N_TURNS /* a kind: no turn of the schedule */
#define MS_TURNTIMES_KINDS (MS_N_TURNS + 1u)

/* A turn that waits for longer than this part of the step, as for a gradient
 * behind what it could run again before, is in pieces. */
#define MS_TURNTIMES_PAUSE 1000u

/* From the first op on the compute stream to the end of the last one; they
 * follow one another, those that run side by side in pieces.  Of a grad-weight
 * turn weight_ns is all but again_ns. */
typedef struct ms_turn_time {
    uint64_t from_ns, to_ns;
    uint64_t again_ns;           /* what runs again for it */
    uint64_t weight_ns;          /* gradients of weights */
    uint64_t stage, micro_batch; /* of the optimizer's: 0 */
    const char *name;            /* of the kind */
    uint8_t kind;
} ms_turn_time;
extern const char *const ms_turntimes_names[MS_TURNTIMES_KINDS];

/* Turns that take no time are left out. */
ms_err ms_turntimes_measure(const ms_timeline *line, const ms_program *program,
                            uint16_t rank, ms_arena *arena,
                            ms_turn_time **turns, uint32_t *n, ms_fault *fault);

#endif
