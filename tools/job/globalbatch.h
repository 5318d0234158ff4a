/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_GLOBALBATCH_H
#define MS_TOOLS_GLOBALBATCH_H

/* The batch of a job: --batch is that of each data-parallel rank, in all of its
 * micro-batches; --global-batch that of all of them together.
 *
 *     memsim run llama-3-8b --gpus 8 -p zero:3+microbatch:4 --global-batch 64
 *     64 samples a step = 8 ranks x 4 micro-batches x 2 samples */

#include "policies/common/policy.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

/* The number of data-parallel ranks that --gpus and the policies make. */
ms_err ms_globalbatch_ranks(const ms_job *job, uint32_t *ranks,
                            ms_fault *fault);
/* A rank's share of the global batch. MS_EUSAGE where it does not divide, or
 * where --batch gives another one. */
ms_err ms_globalbatch_divide(const ms_job *job, uint64_t *batch,
                             ms_fault *fault);
/* Checks that the step trains the global batch: a model of a fixed batch may
 * not. */
ms_err ms_globalbatch_check(const ms_job *job, const ms_result *result,
                            ms_fault *fault);
/* " on each of 8 GPUs = 64 sequences, 131,072 tokens a step": what follows the
 * batch of a rank in summaries and figures; nothing for one GPU. */
void ms_globalbatch_words(const ms_result *result, ms_text *text);

#endif
