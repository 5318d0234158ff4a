/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TESTS_INLINED_H
#define MS_TESTS_INLINED_H

/* The step of a model whose text is in the test.
 *
 *     ms_settings_init(&job);
 *     job.training.batch = 4;
 *     err = inlined_step(MODEL, "swap:te=2", &job, &keep, &trial, &result,
 *                        &fault);
 *
 * The job has everything but the model and the policies; result is made anew.
 */

#include "policies/common/policy.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

/* Of a suite that runs one step after the other: the step before is gone, and
 * the job says nothing yet. */
void inlined_begin(ms_job *job, ms_arena *keep, ms_arena *trial,
                   ms_fault *fault);
/* As far as the graph. */
ms_err inlined_lower(const char *text, const char *policy, ms_job *job,
                     ms_arena *keep, ms_result *result, ms_fault *fault);
/* As far as the report. */
ms_err inlined_step(const char *text, const char *policy, ms_job *job,
                    ms_arena *keep, ms_arena *trial, ms_result *result,
                    ms_fault *fault);
/* The same of so many samples by these kernels, from the start. */
ms_err inlined_run(const char *text, uint64_t batch, uint32_t kernels,
                   const char *policy, ms_arena *keep, ms_arena *trial,
                   ms_result *result, ms_fault *fault);
/* --dump graph of it; to be freed. */
char *inlined_graph_text(const ms_result *result, ms_arena *trial);

#endif
