/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_GLOBALBATCH_H
#define MS_TOOLS_GLOBALBATCH_H

/* The batch of a job: --batch is that of each data-parallel rank, in all of its
 * micro-batches; --global-batch that of all of them together.
 *
 *     memsim run llama-3-8b --gpus 8 -p zero:3+microbatch:4 --global-batch 64
 *     64 samples a step = 8 ranks x 4 micro-batches x 2 samples */

#include "graphs/graphs.h"
#include "policies/common/policy.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

/* The data-parallel ranks that --gpus and the policies make of the job. */
ms_err ms_globalbatch_ranks(const ms_job *job, uint32_t *ranks,
                            ms_fault *fault);
/* A rank's part of the job's global batch.  MS_EUSAGE where it does not divide,
 * or --batch says another. */
ms_err ms_globalbatch_divide(const ms_job *job, uint64_t *batch,
                             ms_fault *fault);
/* Has the step as many?  A model of a fixed batch may not. */
ms_err ms_globalbatch_check(const ms_job *job, const ms_result *result,
                            ms_fault *fault);
/* " on each of 8 GPUs = 64 sequences, 131,072 tokens a step"; nothing where
 * there is one.  What follows the batch of a rank in summaries and figures. */
void ms_globalbatch_words(const ms_result *result, ms_text *text);

#endif
