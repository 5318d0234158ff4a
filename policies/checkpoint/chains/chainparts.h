/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_CHAINPARTS_H
#define MS_POLICIES_CHAINPARTS_H

/* Private to policies/checkpoint: each stage of a pipeline, here called a part
 * (chains have stages of their own), as a chain (policies/solve/stages.h).  A
 * model without a pipeline is one part.
 *
 *     ms_chainparts parts;
 *     MS_TRY(ms_chainparts_find(context, &parts, fault));
 *     for (uint32_t k = 0; k < parts.n; k++)
 *         MS_TRY(plan_for(&parts.of[k], &plans[k]));
 */

#include "policies/solve/stages.h"

typedef struct ms_chainparts {
    uint32_t n;
    ms_stages *of;
    uint32_t *of_unit; /* per unit its part */
    /* Per part and stage [1 .. chain.n] the number of its block in the part,
     * from 0 up, or MS_NONE; per part how many there are. */
    uint32_t **block, *n_blocks;
} ms_chainparts;

/* MS_EUSAGE: the model is one part that has no stage before its loss. */
ms_err ms_chainparts_find(const ms_policy_context *context,
                          ms_chainparts *parts, ms_fault *fault);
/* The most blocks that a part has; MS_EUSAGE: none has one. */
ms_err ms_chainparts_blocks(const ms_chainparts *parts, uint32_t *most,
                            ms_fault *fault);

#endif
