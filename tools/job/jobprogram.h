/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_JOBPROGRAM_H
#define MS_TOOLS_JOBPROGRAM_H

/* From a lowered job to its program and to the machine that replays it:
 *
 *     stepmachine.c   the device's rates as one of the job's ranks sees them
 *     jobprogram.c    the policies' program, or the file's
 */

#include "graphs/device.h"
#include "policies/common/policy.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

/* ---- stepmachine.c ------------------------------------------------------- */

/* The options of expanding for one of the ranks that work side by side. */
ms_expand_opts ms_stepmachine_rates(const ms_device *device,
                                    const ms_shape *shape);
/* Sets the options of expanding for the rank; the machine that it is
 * replayed on goes to result. Faults: MS_EUSAGE for --wall beside uvm. */
ms_err ms_stepmachine_find(const ms_job *job, ms_expand_opts *opts,
                           ms_result *result, ms_fault *fault);

/* ---- jobprogram.c -------------------------------------------------------- */

/* The number of ops in all micro-batches of the result's shape. */
uint64_t ms_jobprogram_ops(const ms_result *result);
/* The first half of a step: makes the program and the options of expanding.
 * It allocates the step's nouns from trial; pointers to those that result
 * had before stay valid. Faults: MS_EUSAGE for more micro-batches than a
 * host has memory for. */
ms_err ms_jobprogram_make(const ms_job *job, ms_arena *trial,
                          ms_expand_opts *opts, ms_result *result,
                          ms_fault *fault);
/* The two parts of it: all but the program, and the program. */
ms_err ms_jobprogram_begin(const ms_job *job, ms_arena *trial,
                           ms_expand_opts *opts, ms_result *result,
                           ms_fault *fault);
ms_err ms_jobprogram_write(const ms_job *job, ms_arena *trial,
                           const ms_expand_opts *opts, ms_result *result,
                           ms_fault *fault);
/* The policies' schedule of so many micro-batches, behind begin. */
ms_err ms_jobprogram_schedule(const ms_job *job, ms_arena *trial,
                              const ms_expand_opts *opts,
                              const ms_result *result, uint32_t micro_batches,
                              struct ms_schedule *schedule, ms_fault *fault);
/* Behind begin, instead of write: see ms_apply_keep.  A program of a file is
 * more than what is kept. */
ms_err ms_jobprogram_keep(const ms_job *job, ms_arena *trial,
                          const ms_expand_opts *opts, const ms_result *result,
                          ms_keep *keep, bool *alone, ms_fault *fault);

#endif
