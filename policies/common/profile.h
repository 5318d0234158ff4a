/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_PROFILE_H
#define MS_POLICIES_PROFILE_H

/* Measured execution, "iteration 0" (Capuchin, Peng et al., ASPLOS
 * 2020): a policy expands and replays the program that it was given and reads
 * when each tensor is used, and how high memory stands in each call.
 *
 *     ms_profile profile;
 *     MS_TRY(ms_profile_run(context, program, min_bytes, &profile, fault));
 *     for (uint32_t i = 0; i < profile.n_tensors; i++) {
 *         const ms_profile_tensor *t = &profile.tensors[i];
 *         uint64_t idle_ns = t->back_ns - t->out_ns;
 *         ... worth a copy out after call t->out_call, and one in before
 *             call t->back_call?
 *     }
 *
 * Example: unit 0 makes a (run forward 0: call 1), unit 1 reads it (call 2) and
 * its backward does (call 7): a's out_call is 2, its back_call 7; without it
 * level_bytes[3 .. 6] are a's bytes lower, and call 7 is not. */

#include "policies/common/policy.h"

/* A tensor of forward and its widest gap between two uses. */
typedef struct ms_profile_tensor {
    uint32_t storage, micro_batch;
    uint32_t back_op; /* graph op of the use behind the gap */
    uint64_t bytes;
    uint32_t out_call, back_call; /* of the uses; at least one call between */
    uint64_t out_ns, back_ns; /* the first one's end, the second one's start */
} ms_profile_tensor;

typedef struct ms_profile {
    uint64_t peak_bytes, step_ns;
    uint32_t n_calls, n_ops; /* n_ops: of the plan */
    uint64_t *start_ns;    /* n_calls + 1: the compute stream comes to a call */
    uint64_t *level_bytes; /* per call: the device's highest, in host order */
    uint32_t n_tensors;
    ms_profile_tensor *tensors; /* of at least min_bytes */
    /* CSR, per call: the storages of this size that forward made and its ops
     * make or read, each once. */
    uint32_t *use_at, *use;
} ms_profile;

/* A copy of so many bytes, as expand times it. */
uint64_t ms_profile_copy_ns(const ms_expand_opts *opts, uint64_t bytes,
                            bool in);
/* Faults (MS_EUSAGE): the context has nothing to measure with. */
ms_err ms_profile_run(const ms_policy_context *context,
                      const ms_program *program, uint64_t min_bytes,
                      ms_profile *profile, ms_fault *fault);
/* Peak (as the run will book it) and step time alone, of the program as the
 * policies behind the context's will leave it. */
ms_err ms_profile_measure(const ms_policy_context *context,
                          const ms_program *program, uint64_t *peak_bytes,
                          uint64_t *step_ns, ms_fault *fault);
/* The same with the caller's scratch memory, for policies that measure often.
 */
ms_err ms_profile_measure_in(const ms_policy_context *context,
                             const ms_program *program, ms_arena *scratch,
                             uint64_t *peak_bytes, uint64_t *step_ns,
                             ms_fault *fault);
/* What a rank comes to: what the ops of its compute stream take or, of the only
 * rank, the step. */
typedef struct ms_profile_rank {
    uint64_t peak_bytes, work_ns;
} ms_profile_rank;
/* Per rank of the schedule; ranks that run copies of the same stages have the
 * highest of both in the row of that which ms_schedule.stages names. */
ms_err ms_profile_ranks_in(const ms_policy_context *context,
                           const ms_program *program, ms_arena *scratch,
                           ms_profile_rank *ranks, ms_fault *fault);
/* The copies in that the compute stream had to wait for. */
typedef struct ms_profile_copy {
    uint32_t storage, micro_batch;
} ms_profile_copy;
ms_err ms_profile_waited(const ms_policy_context *context,
                         const ms_program *program, ms_profile_copy **copies,
                         uint32_t *n, ms_fault *fault);
/* The bytes that a plan may take: as given, else what the machine has beside
 * its context. */
uint64_t ms_profile_budget(const ms_policy_context *context,
                           const ms_policy_value *budget);

#endif
