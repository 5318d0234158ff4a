/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_FITADVICE_H
#define MS_TOOLS_FITADVICE_H

/* What else would make the job fit where nothing that fit searched does: lower
 * precision or other training, as run advises it.
 *
 *     advice:   other numbers: --precision bf16 fits in 65.99 GiB, ...
 *     or:       other training: --set lora.rank=16 fits in 24.94 GiB, ... */

#include "policies/common/policy.h"
#include "tools/advice/advice.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/options/options.h"
#include "tools/points/points.h"

typedef struct ms_fitadvice {
    const char *lines; /* the lines above; NULL: nothing that was tried fits */
    const char *command; /* to type for the first line */
} ms_fitadvice;

/* job has the policies that were given; on several GPUs without a policy that
 * shares work, FSDP is assumed. There is no advice for a job that is refused.
 */
ms_err ms_fitadvice_find(ms_points *points, const ms_job *job,
                         const ms_arguments *arguments, ms_arena *arena,
                         ms_fitadvice *advice, ms_fault *fault);

#endif
