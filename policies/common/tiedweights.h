/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_TIEDWEIGHTS_H
#define MS_POLICIES_TIEDWEIGHTS_H

/* Weights that layers of several pipeline stages share, or that are there twice
 * because their stage is (DualPipe).
 *
 * Each stage has a copy, with a .grad and optimizer states of its own.  So that
 * the copies stay equal, their gradients are summed before the step, behind the
 * reductions over data-parallel ranks (Megatron-LM, core/distributed/
 * finalize_model_grads.py, _allreduce_word_embedding_grads):
 *
 *     reduce 7 rank 0 to here group 7 tag 1     embeddings.tokens:grad
 *     reduce 8 rank 3 to here group 7 tag 1     head:grad
 *     step all rank 0
 *
 * A rank with two copies takes part with the first: real ones have one there.
 */

#include "policies/common/policy.h"

/* Puts these calls before the steps of a program whose ranks have stages. */
ms_err ms_tiedweights_write(const ms_policy_context *context,
                            ms_program *program, ms_fault *fault);

#endif
