/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_FITADVICE_H
#define MS_TOOLS_FITADVICE_H

/* Where nothing of what fit searched fits: what else would make the job fit,
 * other numbers and other training included, as run advises it.
 *
 *     advice:   other numbers: --precision bf16 fits in 65.99 GiB, ...
 *     or:       other training: --set lora.rank=16 fits in 24.94 GiB, ...
 */

#include "graphs/graphs.h"
#include "policies/common/policy.h"
#include "tools/advice/advice.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/points.h"
#include "tools/options/options.h"

typedef struct ms_fitadvice {
    const char *lines;   /* as above; NULL: nothing that was tried fits */
    const char *command; /* of the first */
} ms_fitadvice;

/* job: with the policies that were given; several GPUs that share nothing are
 * taken under FSDP.  A job that is itself refused has no advice. */
ms_err ms_fitadvice_find(ms_points *points, const ms_job *job,
                         const ms_arguments *arguments, ms_arena *arena,
                         ms_fitadvice *advice, ms_fault *fault);

#endif
