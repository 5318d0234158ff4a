/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_POOLINSTANT_H
#define MS_SIM_POOLINSTANT_H

/* Private to pooled.c: a look at each rank's pool at its peak.
 *
 * The peak is known only when the step is over.  Where the exact pool has its
 * own is known before, and better still where the pool had it in a step before
 * of the same plan; mostly it is there again: the last step is looked at behind
 * that op.  Only where the peak turns out to be at another op the steps run
 * again.  looks: per rank, after the requests of op; MS_NONE: no look. */

#include "sim/nouns.h"
#include "sim/pools/steps/pooled.h"

/* Where the ranks of the line are looked at; brief: nowhere. */
ms_err ms_poolinstant_guess(const ms_timeline *line, bool brief,
                            ms_arena *arena, struct ms_pooled_moment **looks,
                            ms_fault *fault);
/* Looks at a pool after the requests of an op, which is of the plan and of the
 * pool's rank: what is idle, and what of that could serve the next request of
 * the rank. */
void ms_poolinstant_look(const ms_plan *plan, uint32_t op, const ms_pool *pool,
                         struct ms_pooled_moment *look);
/* Were the looks at the peaks of the line's ranks?  Those that were become
 * theirs, the others move there.  Where none was asked for out has no peaks. */
bool ms_poolinstant_found(const ms_timeline *line,
                          struct ms_pooled_moment *looks, ms_pooled *out);

#endif
