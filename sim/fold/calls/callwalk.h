/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_CALLWALK_H
#define MS_SIM_CALLWALK_H

/* Private to sim/fold: calls of a program one after the other, from the states
 * of owners in learner.now, which they change.
 *
 *     MS_TRY(ms_callwalk_begin(&walk, &program, fault));
 *     for (i = 0; i < n && walk.why == MS_FOLD_WHOLE; i++)
 *         MS_TRY(ms_callwalk_call(&walk, &program.calls[i]));
 *     use(walk.since); */

#include "sim/fold/calls/learn.h"

typedef struct ms_callwalk {
    ms_learner learner;
    ms_question question;
    const ms_program *program;
    ms_question_set *sets; /* of the program */
    uint32_t sets_capacity;
    ms_fault *fault;
    ms_fold_why why;
    ms_effect since; /* what the calls did since it was set to nothing */
    ms_tape tape;    /* with several streams: and their ops */
    uint32_t replay; /* the first unit of a replay in parts that is under way,
                        or MS_NONE */
    bool replay_state;
    uint32_t learnt; /* calls that were expanded */
    /* Unless `all`, the owners whose states are set up, besides shared and
     * rest; strayed: a call has asked of another one. */
    bool all, strayed;
    uint32_t low, high;
    bool notes; /* the numbers of the answers are noted, until a program begins
                   the next time: */
    uint32_t *steps, n_steps, steps_capacity;
} ms_callwalk;

/* The classes are the graph's; the walk is for programs that need the columns
 * and streams of this one. */
ms_err ms_callwalk_open(ms_callwalk *walk, const ms_classes *classes,
                        const ms_expand_opts *opts, const ms_machine *machine,
                        const ms_program *program, ms_arena *keep,
                        ms_arena *known, ms_fault *fault);
void ms_callwalk_close(ms_callwalk *walk);
/* Before the first call of a program. */
ms_err ms_callwalk_begin(ms_callwalk *walk, const ms_program *program,
                         ms_fault *fault);
/* One call; why says whether there was an answer. */
ms_err ms_callwalk_call(ms_callwalk *walk, const ms_call *call);
/* Of a RERUN one stage of one unit (sim/expand/bind.h); which come when is the
 * caller's, and so is replay before them. */
ms_err ms_callwalk_stage(ms_callwalk *walk, const ms_call *call,
                         ms_bind_stage stage, uint32_t unit);

#endif
