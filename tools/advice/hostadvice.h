/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_HOSTADVICE_H
#define MS_HOSTADVICE_H

#include "policies/common/policy.h"
#include "sim/names.h"
#include "sim/report.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

/* Other policies that leave the node enough host memory and disk, for a job
 * whose device has enough memory. */
typedef struct ms_hostadvice {
    const char *policy; /* in place of those given; NULL: none is known */
    struct ms_far_memory far[MS_N_POOLS]; /* what the node needs with them */
    uint64_t step_ns;
} ms_hostadvice;
ms_err ms_hostadvice_find(const ms_job *job, const ms_result *result,
                          ms_arena *arena, ms_hostadvice *advice,
                          ms_fault *fault);
void ms_hostadvice_put(const ms_hostadvice *advice, ms_text *text);

#endif
