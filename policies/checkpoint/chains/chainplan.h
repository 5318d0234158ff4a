/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_CHAINPLAN_H
#define MS_POLICIES_CHAINPLAN_H

/* checkpoint:revolve=N and checkpoint:optimal,budget=B: the model as a chain, a
 * plan for it, and the plan as calls.  Each part of it (chainparts.h) is a
 * chain, and the budget is each rank's, whose parts are planned together
 * (partflights.h). */

#include "policies/common/policy.h"

typedef struct ms_chainplan_choice {
    uint32_t checkpoints;  /* of revolve; 0: the optimum in the budget */
    uint64_t budget_bytes; /* of the step's peak; 0: none is given */
    uint32_t slots;
    bool early_stop;
} ms_chainplan_choice;

/* The peak of the final program decides, not the chain's: what the step has
 * besides the chain is taken from a replay, and the budget of a rank's chains
 * is moved until the program keeps to the given one; a replay tries the next
 * plans of all ranks.  MS_EUSAGE: no budget; MS_EINFEASIBLE names the least, of
 * the rank that needs the most. */
ms_err ms_chainplan_place(const ms_policy_context *context,
                          const ms_chainplan_choice *choice,
                          ms_program *program, ms_fault *fault);

#endif
