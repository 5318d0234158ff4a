/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_SETUP_H
#define MS_TOOLS_SETUP_H

/* Set-ups that hold a step which this one does not: more GPUs that share the
 * model states, or host memory and disk behind the one.  What is named was
 * replayed as memsim run would, and fits.
 *
 *     fits:     memsim run gpt3 -p checkpoint:sqrt+zero:3 --gpus 64
 *               64 GPUs: each 55.20 GiB of 79.18 GiB, 3.10 s a step
 */

#include "graphs/graphs.h"
#include "policies/common/policy.h"
#include "sim/names.h"
#include "sim/report.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/words/words.h"

typedef struct ms_setup {
    const char *policy; /* instead of those given; NULL: none is known */
    uint32_t gpus;
    uint64_t used_bytes; /* of each, as nvidia-smi reports; of: */
    uint64_t capacity_bytes;
    uint64_t step_ns;
    double tokens_per_second; /* of all; negative: does not apply */
    struct ms_far_memory far[MS_N_POOLS];
} ms_setup;

/* The fewest GPUs of a few powers of two; policies of the job that go with it
 * are kept. */
ms_err ms_setup_shared(const ms_job *job, const ms_result *result,
                       ms_arena *arena, ms_setup *setup, ms_fault *fault);
/* The same GPU, of a job that has one. */
ms_err ms_setup_alone(const ms_job *job, const ms_result *result,
                      ms_arena *arena, ms_setup *setup, ms_fault *fault);
/* Both as lines of a summary, and the search for more; found: there is one. */
ms_err ms_setup_put(const ms_summary *summary, bool *found, ms_text *text,
                    ms_fault *fault);
/* The first of these beside what fits otherwise. */
ms_err ms_setup_put_more(const ms_summary *summary, ms_text *text,
                         ms_fault *fault);

#endif
