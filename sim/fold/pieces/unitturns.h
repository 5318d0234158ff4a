/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_UNITTURNS_H
#define MS_SIM_UNITTURNS_H

/* Private to sim/fold: what a piece of a choice does, unit by unit, and of runs
 * of equal units by what one period of them does.
 *
 * A pass takes one turn of each unit of a piece: forward; backward; or a stage
 * of the replay before it.  Which calls these are and what they do depends on
 * what units within the window (sim/fold/pieces/pieces.h) are like, on where
 * these are cut, and on their states: that is the question.  A turn leaves the
 * states of its window, shared and rest.  So, once a turn has the answer of the
 * turn p units before it, the next one finds what its own p units before found,
 * as long as the unit that the window gains is like the one gained then, and so
 * on: whole periods are leapt over, and their effect is a power of that of one.
 *
 * A worked example: 96 equal blocks of two units, one segment, forward, window
 * 4.  The units 0 to 3 have other windows than those behind them; 4 and 5 are
 * learnt or known; 6 is as 4 was, so 8, 10 ... up to 186 are, and 7, 9 ... with
 * them: 90 periods are leapt over, and the last units taken one by one.
 *
 *     ms_unitturns_begin(&units, fault);
 *     units.cut[u] = ...                     of all units that matter
 *     MS_TRY(ms_unitturns_forward(&units, first, end));
 *     use(units.effect, units.step);         and learner.now */

#include "sim/fold/classes/homes.h"
#include "sim/fold/pieces/choicecalls.h"
#include "sim/fold/pieces/turnbook.h"

/* Of cut: */
#define MS_UNITTURNS_SEGMENT 2u /* the unit is in a segment */
#define MS_UNITTURNS_FIRST 1u   /* it begins a piece */

/* A turn of a pass: its answer, and its first step among those of the piece. */
typedef struct ms_unitturns_taken {
    uint32_t answer, step;
} ms_unitturns_taken;

typedef struct ms_unitturns {
    ms_choicecalls *calls;
    ms_turnbook *book;
    const ms_homes *homes;
    ms_arena *keep;
    uint32_t window;
    uint8_t *cut;   /* per unit */
    uint32_t *then; /* per unit: its state as the pass began */
    uint32_t *word, *left;
    /* The turns of a pass since it has begun or leapt. */
    uint64_t pass;
    uint32_t n_taken;
    ms_unitturns_taken *taken;
    uint32_t first, end;        /* the piece */
    bool replays, replay_state; /* its replay is under way */
    /* Of what was asked since it began: */
    ms_effect effect;
    uint32_t *step, n_steps, steps_capacity; /* the answers of calls */
    uint32_t repeated;                       /* turns that were leapt over */
    ms_fold_why why;
    bool strayed; /* a call asked of units outside of its window: it is not
                     known, and the states are of no use */
    ms_fault *fault;
} ms_unitturns;

/* window: on either side; what it is given must outlive it. */
ms_err ms_unitturns_open(ms_unitturns *units, ms_choicecalls *calls,
                         ms_turnbook *book, const ms_homes *homes,
                         uint32_t window, ms_arena *keep, ms_fault *fault);
void ms_unitturns_begin(ms_unitturns *units, ms_fault *fault);
/* A piece that is not a reentrant segment, from the states in learner.now on,
 * which are changed. */
ms_err ms_unitturns_forward(ms_unitturns *units, uint32_t first, uint32_t end);
ms_err ms_unitturns_backward(ms_unitturns *units, uint32_t first, uint32_t end);
/* The end of a micro-batch or of the step, of all units. */
ms_err ms_unitturns_end(ms_unitturns *units, ms_choice_turn turn);

#endif
