/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_ADVICE_H
#define MS_TOOLS_ADVICE_H

/* What to do about a step that does not fit: ways out of the table of changes,
 * the cheapest first, each replayed through the job's own pool.
 *
 *     ms_advice advice;
 *     MS_TRY(ms_advice_find(&job, &result, &arena, &advice, fault));
 *     if (advice.n_fitting > 0)
 *         MS_TRY(ms_advice_command(&advice.ways[0], ...));
 *
 * For each price there is one way at most: what costs nothing is in it as far
 * as it lowers the peak; changes of the price are added, the one that fits and
 * takes the least time, else the one that lowers the peak most, until it fits;
 * then what is not needed is left out again.  The search goes by bare
 * lifetimes, with room for what the pool added to the last proof. */

#include "graphs/graphs.h"
#include "policies/common/policy.h"
#include "tools/advice/changes.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

typedef struct ms_advice_way {
    ms_changes set;
    ms_costs costs; /* what was measured included: a longer step costs time */
    uint64_t peak_bytes, reserved_bytes, step_ns; /* as run reports them */
    bool fits;
} ms_advice_way;

/* Ways that fit, in the order of their price, each faster than those that cost
 * less; what takes more than twice the time comes behind other numbers.  Where
 * none fits, what costs nothing and lowers the peak, and then what lowers it
 * most. */
typedef struct ms_advice {
    uint32_t n, n_fitting;
    ms_advice_way ways[MS_N_COSTS];
    uint32_t tries; /* replays */
} ms_advice;

/* result: of the job as it is.  Nothing where changes cannot be tried: a
 * program in text form, a model too large. */
ms_err ms_advice_find(const ms_job *job, const ms_result *result,
                      ms_advice *advice, ms_fault *fault);
/* Where the step fits as it is: the first change that lowers the peak, by 1 %
 * or more, and costs nothing. */
ms_err ms_advice_lower(const ms_job *job, const ms_result *result,
                       ms_advice *advice, ms_fault *fault);

/* ---- advicewords.c ------------------------------------------------------- */

/* A line, or a line a way. */
ms_err ms_advicewords_put(const ms_advice *advice, const ms_job *job,
                          const ms_result *result, uint32_t indent,
                          ms_text *text, ms_fault *fault);

#endif
