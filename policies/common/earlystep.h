/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_EARLYSTEP_H
#define MS_POLICIES_EARLYSTEP_H

/* Some ops of the optimizer step are due with single gradients
 * (ms_graph.due_first): here they are called for as soon as those are reduced:
 *
 *     reduce 3 to shard      -->      reduce 3 to shard
 *                                     step 3
 *     move 3 to host                  move 3 to host
 *     step all                        step all
 *
 * A gradient that more than one call reduces is ready with the last, one that
 * none does when the step begins. */

#include "policies/common/policy.h"

/* Once all policies have placed their calls. */
ms_err ms_earlystep_write(const ms_policy_context *context, ms_program *program,
                          ms_fault *fault);

#endif
