/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_RANKNAMES_H
#define MS_RANKNAMES_H

/* Private to policies/: order=tp-cp-ep-dp-pp, of any policy whose ranks lie
 * beside others: who are next to each other, first (ms_shape.rank_order;
 * Megatron-LM@d98e8a64, core/parallel_state.py, RankGenerator). */

#include "policies/common/policy.h"
#include "sim/shape.h"

#define MS_RANKNAMES_PARAM                                                     \
    {                                                                          \
        .name = "order", .type = MS_PARAM_NAMES,                               \
        .help = "who are next to each other, first, of tp, cp, ep, dp and pp " \
                "(tensor, context, expert, data, pipeline); default "          \
                "tp-cp-ep-dp-pp, as Megatron-LM"                               \
    }

/* Sets the order where the value is given.  MS_EUSAGE: an unknown name, one
 * twice, or another order than a policy before has given. */
ms_err ms_ranknames_read(const char *policy, const ms_policy_value *value,
                         ms_shape *shape, ms_fault *fault);

#endif
