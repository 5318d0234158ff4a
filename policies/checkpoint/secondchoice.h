/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_SECONDCHOICE_H
#define MS_POLICIES_SECONDCHOICE_H

/* Private to policies/checkpoint: micro-batches that are checkpointed in
 * another way than keep says (ms_keep.other).
 *
 *     first=2,partial=1      the first in flight as first=2, the others in full
 *     full,micro_batches=0   the first in full, the others save all */

#include "policies/checkpoint/segments.h"

/* keep has its variant and early_stop already; the blocks are open and stay. */
ms_err ms_secondchoice_add(const ms_policy_context *context,
                           ms_segments *blocks, ms_keep *keep, ms_fault *fault);

#endif
