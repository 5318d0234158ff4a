/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_DAGPLAN_H
#define MS_POLICIES_DAGPLAN_H

/* checkpoint:optimal,budget=B on a DAG of measured nodes (sim/graph.h): the
 * least time of all orders where the search for it ends, and the program says
 * of which plans its own is the best. */

#include "policies/common/policy.h"

ms_err ms_dagplan_place(const ms_policy_context *context, uint64_t budget_bytes,
                        ms_program *program, ms_fault *fault);

#endif
