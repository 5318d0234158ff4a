/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_RUNRECORD_H
#define MS_TOOLS_RUNRECORD_H

/* A step that was simulated, as a result that can be kept: what memsim run,
 * compare and the library hand out.  policy is the job's policies in canonical
 * spelling (ms_settings_policy). */

#include "plots/record/record.h"
#include "sim/report.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

ms_report_names ms_runrecord_names(const ms_job *job, const ms_result *result,
                                   const char *policy);
/* The parts of a run that are saved, with the headings of its figures. */
ms_err ms_runrecord_of(const ms_job *job, const ms_result *result,
                       const char *policy, ms_arena *arena, ms_record *record,
                       ms_fault *fault);
/* The object that run --json prints. */
ms_err ms_runrecord_json(const ms_job *job, const ms_result *result,
                         const char *policy, ms_text *text, ms_fault *fault);

#endif
