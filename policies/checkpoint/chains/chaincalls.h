/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_CHAINCALLS_H
#define MS_POLICIES_CHAINCALLS_H

/* Plans of chains (policies/solve/chain.h), one for each part of the model, as
 * calls of a program:
 *
 *     SAVE l           RUN forward, keep all; once more: RERUN
 *     CHECKPOINT l, PASS l + 1 .. k - 1, before the input of k is needed
 *                      RUN forward, keep nothing, the last one with a reference
 *                      on the input of k; once more: HOLD it, again
 *     BACKWARD l       RUN backward, then DROP the reference on its input
 *
 * Stages that are saved one behind the other, and go backward next, are one
 * RERUN, which ends with the last tensor that backward needs.  Where backward
 * has halves, what stands before it stands before the first, what stands behind
 * it behind the second.
 *
 * What other parts hand to one is held from its forward to the backward of the
 * first of its stages that reads it and runs again. */

#include "policies/checkpoint/chains/chainparts.h"

typedef struct ms_chaincalls {
    const ms_chainparts *parts;
    const ms_chain_plan *plans; /* per part; one of no acts: the program's calls
                                   stay as they are, it saves all */
    bool early_stop;
} ms_chaincalls;

/* Writes the runs of the program's units, each micro-batch the same, as the
 * plans have them.  program is a default one that keeps all, perhaps with calls
 * that other policies have placed. */
ms_err ms_chaincalls_write(const ms_policy_context *context,
                           const ms_chaincalls *how, ms_arena *arena,
                           ms_program *program, ms_fault *fault);

#endif
