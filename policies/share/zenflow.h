/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_ZENFLOW_H
#define MS_POLICIES_ZENFLOW_H

/* DeepSpeed's ZenFlow: what the device does of it, for offload
 * (policies/sources.md 6; deepspeedai/DeepSpeed
 * deepspeed/runtime/zenflow/zenflow_stage_1_and_2.py and
 * deepspeed/ops/adam/zenflow_torch_adam.py, as of 0.17 and 0.18).
 *
 * Its iteration is a micro-batch here, its update_interval microbatch's M.  Of
 * each reduced gradient the owner sends the columns that matter most to all
 * ranks, each of which updates them at once, in the weights as they are, with
 * moments of their format (MS_KEPT_COLUMNS).  Those of the last micro-batch
 * wait until the host's weights have come, since these would overwrite them.  A
 * bucket, by hand:
 *
 *     reduce 152 to shard whole
 *     take selected                    the columns and what the update makes
 *     work 0 of 152                    broadcasts, on the ranks' queue
 *     work 1 of 152                    the update
 *     give selected
 *     move 152 to host as-is           the whole gradient goes all the same
 *
 * Vectors, which are updated whole, count as matrices.  What the host takes for
 * Python between these ops, and choosing the columns anew once an epoch, is
 * left out. */

#include "policies/common/policy.h"
#include "sim/program.h"

typedef struct ms_zenflow {
    const ms_policy_context *context;
    ms_program *program;
    ms_fault *fault;
    uint64_t *bytes; /* per persistent storage: of a gradient's columns */
    uint64_t all;    /* of all of them */
    uint32_t kept;   /* a buffer */
    bool keeps;      /* what the last micro-batch has selected is there */
} ms_zenflow;

/* Before the others: finds what is selected.  MS_EUSAGE: the weights have their
 * home elsewhere. */
ms_err ms_zenflow_open(ms_zenflow *it);
/* Behind a REDUCE of a gradient: its columns are updated, or kept. */
ms_err ms_zenflow_reduced(ms_zenflow *it, const ms_call *reduce);
/* Behind the GATHER of the weights that the host has updated: the host unscales
 * the gradients for the next update where that runs apart (is_apart), the
 * device updates what it has kept. */
ms_err ms_zenflow_gathered(ms_zenflow *it, const ms_call *gather,
                           bool is_apart);
#endif
