/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_LEFTOUT_H
#define MS_TOOLS_LEFTOUT_H

/* The step that a job would have without some of its policies, replayed: what
 * the summary compares with, and the thin line in the figure over time. */

#include "plots/record/record.h"
#include "policies/common/policy.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

/* Replays the job's step with the policies in `left` alone; exact is as in
 * ms_changes_step. Such a step may be impossible (the whole batch at once);
 * then *possible is false. result is of the job. */
ms_err ms_leftout_step(const ms_job *job, const ms_spec *left, bool exact,
                       const ms_result *result, ms_arena *arena,
                       ms_result *without, bool *possible, ms_fault *fault);
/* Fills record->without where such a policy changes the step, the step takes
 * time, and it is possible without. */
ms_err ms_leftout_record(const ms_job *job, const ms_result *result,
                         ms_arena *arena, ms_record *record, ms_fault *fault);

#endif
