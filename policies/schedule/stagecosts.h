/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_STAGECOSTS_H
#define MS_STAGECOSTS_H

/* Private to policies/schedule: what orders that look at times and bytes are
 * planned with, from the graph's ops as the run has them.
 *
 * A set of activations is what forward has made and backward reads.  Of what
 * the weights' half reads no more counts than such a set has: the authors'
 * limit is one of sets, and a stage may keep more gradients between its halves
 * than it has let go of activations.  Recomputation is not looked at, as with
 * them. */

#include "policies/common/policy.h"
#include "policies/schedule/orders.h"
#include "sim/stage.h"

/* Of n stages. */
ms_err ms_stagecosts_find(const ms_policy_context *context,
                          const ms_stage *stages, uint32_t n,
                          ms_orders_costs *costs, ms_fault *fault);

#endif
