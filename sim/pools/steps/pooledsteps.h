/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_POOLEDSTEPS_H
#define MS_SIM_POOLEDSTEPS_H

/* Private to pooled.c and pooledsteps.c: which steps there are, what is
 * counted in each. */

#include "sim/plan.h"
#include "sim/pools/steps/pooled.h"

/* Step, from 1, of setup->steps; line: the one reported. */
const ms_timeline *ms_pooledsteps_line(const ms_pooled_setup *setup,
                                       const ms_pooled_course *course,
                                       const ms_timeline *line, uint32_t step);
/* The highest level of a rank's device. */
uint64_t ms_pooledsteps_level(const ms_timeline *line);
/* Is the cache emptied before the op allocates?  Once, not for each
 * micro-batch, nor where it runs again. */
bool ms_pooledsteps_empties(const ms_plan *plan, const ms_plan_op *at);
/* Of all steps, the line with the highest level. */
const ms_timeline *ms_pooledsteps_highest(const ms_pooled_course *course,
                                          const ms_timeline *line);
/* Room for all steps, cleared. */
ms_err ms_pooledsteps_open(ms_pooled *out, uint32_t n_ranks, ms_arena *arena,
                           ms_fault *fault);
/* At the start of a step and at its end; peaks are reset in between. */
void ms_pooledsteps_count(ms_pooled *out, uint32_t step, uint32_t rank,
                          const ms_torch_stats *stats, bool from);
/* Of a static plan: the one step is what the ranks are. */
void ms_pooledsteps_planned(ms_pooled *out);
/* What a rank has of the last step and of all. */
void ms_pooledsteps_close(ms_pooled *out, uint32_t rank);
/* What the line reserves without a pool; before one writes its own levels. */
void ms_pooledsteps_exact(const ms_timeline *line, ms_pooled *out);

/* The op of the timeline's plan that does what op of now's does;
 * the start where none does. */
uint32_t ms_pooledsteps_same_op(const ms_timeline *line, const ms_timeline *now,
                                uint32_t op);

#endif
