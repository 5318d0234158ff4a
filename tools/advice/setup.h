/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_SETUP_H
#define MS_TOOLS_SETUP_H

/* Set-ups that hold a step that this one does not: more GPUs that share the
 * model states, or one GPU with host memory and disk. What is named was
 * replayed as memsim run would, and fits.
 *
 *     fits:     memsim run gpt3 -p checkpoint:sqrt+zero:3 --gpus 64
 *               64 GPUs: each 55.20 GiB of 79.18 GiB, 3.10 s a step */

#include "policies/common/policy.h"
#include "sim/names.h"
#include "sim/report.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

typedef struct ms_setup {
    const char *policy; /* in place of those given; NULL: none is known */
    uint32_t gpus;
    uint64_t used_bytes; /* of each GPU, as nvidia-smi reports, out of: */
    uint64_t capacity_bytes;
    uint64_t step_ns;
    double tokens_per_second; /* of all GPUs; negative: does not apply */
    struct ms_far_memory far[MS_N_POOLS];
} ms_setup;

/* The least number of GPUs, doubled from the least that can hold the states.
 * Policies of the job that go together with sharing are kept. */
ms_err ms_setup_shared(const ms_job *job, const ms_result *result,
                       ms_arena *arena, ms_setup *setup, ms_fault *fault);
/* The same for one GPU with host memory and disk; for jobs on one GPU. */
ms_err ms_setup_alone(const ms_job *job, const ms_result *result,
                      ms_arena *arena, ms_setup *setup, ms_fault *fault);
#endif
