/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_SHAREDSTATES_H
#define MS_POLICIES_SHAREDSTATES_H

/* The calls that shared states need, for policies whose ranks share them:
 * shared parameters are gathered before the unit that reads them and let go
 * after it, gradients are reduced when their unit's backward ends, updated
 * weights are gathered after the step.
 *
 *     run forward unit 3              gather P4 (one unit ahead)
 *     run forward unit 4      -->     run forward unit 3
 *                                     move P3 to shard
 *                                     gather P5 ... */

#include "policies/common/policy.h"
#include "sim/shape.h"

typedef struct ms_sharedstates {
    ms_shared shared;
    uint32_t units_ahead; /* parameters are gathered so many units early */
    /* Gradients are reduced in buckets, closed once they hold so much; 0: a
     * unit's gradients together. */
    uint64_t first_bucket_bytes, bucket_bytes;
    bool reduces_at_end; /* all gradients together, when backward has ended */
    bool gathers_ahead; /* updated weights, before the first forward of the next
                           step that reads them, a unit ahead; else behind the
                           update */
} ms_sharedstates;

/* How many ranks share: dp where given, else the job's GPUs.  Faults
 * (MS_EUSAGE, at where): neither is said; another policy has said it. */
ms_err ms_sharedstates_ranks(const ms_policy_value *dp, const char *where,
                             ms_shape *shape, ms_fault *fault);
/* So many of these ranks divide the states of experts, where it is given.
 * Faults (MS_EUSAGE, at where): the ranks do not divide into such groups. */
ms_err ms_sharedstates_experts(const ms_policy_value *value, const char *where,
                               ms_shape *shape, ms_fault *fault);
/* Fault (MS_EUSAGE, at where): experts share their states otherwise, and the
 * graph has none. */
ms_err ms_sharedstates_need_experts(const ms_policy_context *context,
                                    const char *where, ms_fault *fault);
/* What moves between the memories of host and device needs both.  Fault
 * (MS_EUSAGE, at where): the device has one memory. */
ms_err ms_sharedstates_two_memories(const char *where, const ms_shape *shape,
                                    ms_fault *fault);
/* Inserts the calls into program. */
ms_err ms_sharedstates_write(const ms_policy_context *context,
                             const ms_sharedstates *shares, ms_program *program,
                             ms_fault *fault);

#endif
