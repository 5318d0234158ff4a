/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_ADVICE_H
#define MS_TOOLS_ADVICE_H

/* What to do about a step that does not fit: ways that change the job, the
 * cheapest first, each replayed through the job's own pool.
 *
 *     ms_advice advice;
 *     MS_TRY(ms_advice_find(&job, &result, &arena, &advice, fault));
 *     if (advice.n_fitting > 0)
 *         MS_TRY(ms_advice_command(&advice.ways[0], ...));
 *
 * For each price there is at most one way. It starts with the free changes that
 * lower the peak; then changes of the price are added, one at a time, until the
 * step fits: the one with which it fits in the least time, else the one that
 * lowers the peak most. Then changes that are not needed are left out again.
 * The search replays without the pool and keeps room for what the pool added in
 * the last proof. */

#include "policies/common/policy.h"
#include "tools/advice/changes.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

typedef struct ms_advice_way {
    ms_changes set;
    ms_costs costs; /* as measured: a step that takes longer costs time */
    uint64_t peak_bytes, reserved_bytes, step_ns; /* as run reports them */
    bool fits;
} ms_advice_way;

/* Ways that fit, in the order of their prices, each faster than those that cost
 * less; a way that takes more than twice the step's time stands behind the next
 * price. Where none fits: the free changes that lower the peak, and then the
 * way that lowers it most. */
typedef struct ms_advice {
    uint32_t n, n_fitting;
    ms_advice_way ways[MS_N_COSTS];
    uint32_t tries; /* the number of replays */
} ms_advice;

/* result is of the job as it is. There is no advice where changes cannot be
 * tried: for a program in text form and for a model that is too large. */
ms_err ms_advice_find(const ms_job *job, const ms_result *result,
                      ms_advice *advice, ms_fault *fault);
/* For a step that fits as it is: the first free change that lowers the peak by
 * 1 % or more. */
ms_err ms_advice_lower(const ms_job *job, const ms_result *result,
                       ms_advice *advice, ms_fault *fault);

/* ---- advicewords.c ------------------------------------------------------- */

/* One line, or a line for each way. */
ms_err ms_advicewords_put(const ms_advice *advice, const ms_job *job,
                          const ms_result *result, uint32_t indent,
                          ms_text *text, ms_fault *fault);

#endif
