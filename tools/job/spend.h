/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_SPEND_H
#define MS_TOOLS_SPEND_H

/* Private to jobway.c: what of a large step goes before its end.
 *
 * A run without policies that only writes its record reads the model, the
 * program and most columns of the graph for the last time when it is expanded:
 * of a chain of 10^6 layers 500 of 1,360 MiB.  (Beside a step with policies the
 * record has one without, of the same graph.)  What is gone is NULL in a graph
 * of the result's own. */

#include "tools/job/job.h"

/* Is the job one that asks for none of it, and the graph a large one? */
bool ms_spend_pays(const ms_job *job, const ms_result *result);
/* Before expand: what only lowering, dumps and hooks of the program read.
 * keep: where model and graph lie. */
ms_err ms_spend_early(const ms_job *job, ms_arena *keep, ms_arena *trial,
                      ms_result *result, ms_fault *fault);
/* Behind expand: the calls, and the columns that it alone has read. */
ms_err ms_spend_late(ms_arena *keep, ms_arena *trial, ms_result *result,
                     ms_fault *fault);

#endif
