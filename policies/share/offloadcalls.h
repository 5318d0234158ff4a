/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_OFFLOADCALLS_H
#define MS_POLICIES_OFFLOADCALLS_H

/* The calls of offloaded states, which stand around those of the policy that
 * shares them: parameters come before they are gathered, gradients leave when
 * they are reduced, a delayed step begins with the host's part.
 *
 *     reduce 152 to shard        -->     reduce 152 to shard
 *     wait 152                           move 152 to host
 *                                        wait 152 */

#include "policies/common/policy.h"

typedef struct ms_offloadcalls {
    uint32_t read_ahead, copy_ahead; /* gathers by which parameters are read
                                        before their copy, and copied */
    uint32_t units_ahead; /* of one rank: units by which they are gathered */
} ms_offloadcalls;

/* Where states lie is in context->shape.  Inserts the calls into program. */
ms_err ms_offloadcalls_write(const ms_policy_context *context,
                             const ms_offloadcalls *how, ms_program *program,
                             ms_fault *fault);

#endif
