/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_NORMMEETING_H
#define MS_POLICIES_NORMMEETING_H

/* The norm of all gradients where ranks have parts of the model: each finds
 * that of its own (training.clip_norm), and none may scale its gradients before
 * it knows that of the others.
 *
 * sync: the ranks meet (Megatron-LM, core/optimizer/clip_grads.py,
 * get_grad_norm_fp32: an all-reduce of the model-parallel ranks, whose result
 * the host reads):
 *
 *     step all rank 1 ahead                    the rank's own norm
 *     reduce nothing rank 1 to here group 7 buffer 0 tag 1
 *     sync rank 1 buffer 0
 *     step all rank 1 later                    scales, updates
 *
 * postvalidate: each rank updates with the norm of the ranks up to its own,
 * which it gets from the one before and hands on to the one behind; the last
 * one knows whether that was right (Qi et al. 2024, section 4;
 * sail-sg/zero-bubble-pipeline-parallelism@39f2c186).  So no rank waits for one
 * behind it, and steps follow each other at the longest of the ranks' own spans
 * (ms_program.overlaps):
 *
 *     recv nothing rank 1 peer 0 buffer 0
 *     step all rank 1 ahead
 *     sync rank 1 buffer 0
 *     send nothing rank 1 peer 2 buffer 0
 *     step all rank 1 later
 *
 * The verdict's way back, four bytes from rank to rank under the next step's
 * first forwards, is not told: nothing waits for it unless it is bad, and then
 * the step is made undone and made again. */

#include "policies/common/policy.h"

/* The words of pipeline:optimizer=. */
enum { MS_NORM_SYNC, MS_NORM_POSTVALIDATE };
#define MS_NORM_WORDS "sync|postvalidate"

/* As pipeline:optimizer= says; without it each rank scales its gradients by the
 * norm of its own, and waits for none.  MS_EUSAGE: the step has no norm. */
ms_err ms_normmeeting_write(const ms_policy_context *context,
                            ms_program *program, ms_fault *fault);

#endif
