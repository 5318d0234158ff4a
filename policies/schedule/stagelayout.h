/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_STAGELAYOUT_H
#define MS_STAGELAYOUT_H

/* Which layers (blocks) each stage of a pipeline has.  What stands before the
 * first block is the first stage's, what stands behind the last one (final
 * norm, head, loss) the last stage's, what stands behind another block the
 * stage's that has it.  So a layout is a number of layers for each stage; the
 * first and the last may have none, and a layout may say so of others, too
 * (ms_empty_stages).  Layers of multi-token prediction come behind the others;
 * they are not counted, and the last stage's where no m says whose.
 *
 * Of 30 layers in 16 stages Et*3|(tt|)*13t|L is 3/2/2/2/.../2/1/0: embedding
 * and three layers, thirteen times two, one, and the loss by itself. */

#include "policies/common/policy.h"
#include "sim/shape.h"
#include "sim/stage.h"

/* What is asked for, at most one way; each may be not given.  Where none is,
 * stages have as many layers each, or cost as much (costsplit.h). */
typedef struct ms_stagelayout {
    const ms_policy_value *layers; /* 11/13, or Megatron-LM's layout */
    /* torchtitan's: the number that makes stages, and for how many layers the
     * first and the last stage count besides */
    const ms_policy_value *per_stage, *less;
    /* Megatron-LM's: embedding (bit 0) and loss (bit 1) count as layers; the
     * layers of the first and of the last rank */
    const ms_policy_value *account, *first, *last;
} ms_stagelayout;

/* How many stages the layout has itself; 0: as many as others say.  Faults
 * (MS_EUSAGE): it is not one. */
ms_err ms_stagelayout_count(const ms_policy_context *context,
                            const ms_stagelayout *layout, uint32_t *n,
                            ms_fault *fault);
/* Before there is a graph: the stages between the first and the last that
 * layers= leaves without layers.  The same faults. */
ms_err ms_stagelayout_empties(const ms_policy_value *layers,
                              ms_empty_stages *empty, ms_fault *fault);
/* Fills first and last of n stages, whose ranks are there (n_ranks).  Faults
 * (MS_EUSAGE): the model's layers do not divide so. */
ms_err ms_stagelayout_divide(const ms_policy_context *context,
                             const ms_stagelayout *layout, uint32_t n_ranks,
                             uint32_t n, ms_stage *stages, ms_fault *fault);

#endif
