/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Context parallelism: ranks divide the sequence of the same samples.  To all
 * that share states they are data ranks like others, with other tokens; only
 * attention exchanges between them (graphs/parallel/contextops.h). */
#include "policies/common/policy.h"
#include "sim/shape.h"

#include <stdio.h>

enum { RANKS, MODE, N_PARAMS };

static const ms_param params[N_PARAMS] = {
    [RANKS] = {.name = "ranks",
               .type = MS_PARAM_INT,
               .choice = true,
               .bare = true,
               .low = 1,
               .high = 1024,
               .help = "ranks that divide the sequence"},
    [MODE] = {.name = "mode",
              .type = MS_PARAM_WORD,
              .words = "auto|a2a|ring|allgather",
              .help = "a2a: for attention each has all of the sequence and a "
                      "part of the heads (Ulysses), of keys and values a copy "
                      "of one where there are fewer; ring: keys and values go "
                      "round, causal work is balanced; allgather: each gathers "
                      "all of them; auto: ring with Megatron's kernels, else "
                      "a2a"},
};

static ms_err shape(const ms_policy_context *context, ms_shape *shape,
                    ms_fault *fault)
{
    uint32_t ranks = (uint32_t)context->values[RANKS].number;
    char hint[64];
    if (shape->data_ranks <= 1)
        shape->data_ranks = ranks;
    if (shape->data_ranks % ranks != 0) {
        snprintf(hint, sizeof hint, "take %u or %u ranks, for example",
                 shape->data_ranks / ranks * ranks + ranks,
                 (shape->data_ranks / ranks + 2) * ranks);
        return ms_fail(fault, MS_EUSAGE, "context", hint,
                       "%u ranks with the same model do not divide into groups "
                       "of %u",
                       shape->data_ranks, ranks);
    }
    shape->context_ranks = ranks;
    shape->context_mode = (uint8_t)context->values[MODE].number;
    return MS_OK;
}

const ms_policy ms_policy_context_ranks = {
    .name = "context",
    .summary = "ranks divide the sequence; attention goes over all of it",
    .example = "context:4,mode=ring",
    .params = params,
    .n_params = N_PARAMS,
    .shape = shape,
};
