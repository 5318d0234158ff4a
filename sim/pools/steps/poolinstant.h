/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_POOLINSTANT_H
#define MS_SIM_POOLINSTANT_H

/* Private to pooled.c: a look at a pool after the requests of an op, which is
 * of the plan and of the pool's rank: what is idle, and what of that could
 * serve the next request of the rank. */

#include "sim/nouns.h"
#include "sim/pools/steps/pooled.h"

/* at: zero but for op. */
ms_err ms_poolinstant_look(const ms_plan *plan, uint32_t op,
                           const ms_pool *pool, ms_arena *arena,
                           struct ms_pooled_moment *at, ms_fault *fault);

#endif
