/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_CHOICECALLS_H
#define MS_SIM_CHOICECALLS_H

/* Private to sim/fold: the default program of a choice, written only where a
 * turn is not known, and which of its calls are a turn's.
 *
 *     ms_choicecalls_begin(&calls, &choice);
 *     MS_TRY(ms_choicecalls_find(&calls, MS_CHOICE_FORWARD, 3, 5, &first, &end,
 *                                fault));
 *     for (; first < end; first++)
 *         use(calls.program.calls[first]); */

#include "sim/fold/calls/callwalk.h"

/* Units forward, units backward, the end of a micro-batch, that of the step. */
typedef enum ms_choice_turn {
    MS_CHOICE_FORWARD,
    MS_CHOICE_BACKWARD,
    MS_CHOICE_TAIL,
    MS_CHOICE_LAST,
    MS_N_CHOICE_TURNS
} ms_choice_turn;

typedef struct ms_choicecalls {
    ms_callwalk *walk; /* which goes to the program when it is written */
    ms_arena trial;
    const ms_fold_choice *choice;
    bool written;
    ms_program program;                   /* of one micro-batch; then: */
    uint32_t *forward_end, *backward_end; /* per unit: behind its calls */
    uint32_t tail, last;                  /* of a micro-batch; of the step */
} ms_choicecalls;

ms_err ms_choicecalls_open(ms_choicecalls *calls, ms_callwalk *walk,
                           ms_arena *keep, ms_fault *fault);
void ms_choicecalls_begin(ms_choicecalls *calls, const ms_fold_choice *choice);
/* The calls [*from, *until) of a turn of units [first, end). */
ms_err ms_choicecalls_find(ms_choicecalls *calls, ms_choice_turn turn,
                           uint32_t first, uint32_t end, uint32_t *from,
                           uint32_t *until, ms_fault *fault);
void ms_choicecalls_close(ms_choicecalls *calls);

#endif
