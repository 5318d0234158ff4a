/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ZeRO (Rajbhandari et al. 2020): data-parallel ranks share the optimizer state
 * (1), the gradients too (2), the parameters too (3).  As the paper has it
 * (impl=ideal): every rank's part is the elements over the ranks, the part of
 * the gradients exists all through the step, each unit's gradients are reduced
 * when its backward ends, each unit's parameters are gathered before it runs.
 * It is assumed that the next owner of a block waits on an event recorded by
 * the previous one, which costs no time: no block is held for other streams,
 * and active bytes equal allocated ones.  What impl=deepspeed means is a policy
 * of its own (deepspeed.c). */
#include "policies/share/sharedstates.h"

#include <stdio.h>

enum { STAGE, RANKS, EXPERTS, IMPL, PREFETCH, OVERLAP, GATHER, N_PARAMS };
enum { IDEAL, MEGATRON };
static const uint8_t engines[] = {MS_ENGINE_IDEAL, MS_ENGINE_MEGATRON};

#define MOST_RANKS 65536

static const ms_param params[N_PARAMS] = {
    [STAGE] = {.name = "stage",
               .type = MS_PARAM_INT,
               .choice = true,
               .bare = true,
               .low = 0,
               .high = 3,
               .help = "what is shared: 0 nothing, 1 optimizer state, 2 and "
                       "gradients, 3 and parameters"},
    [RANKS] = {.name = "dp",
               .type = MS_PARAM_INT,
               .low = 1,
               .high = MOST_RANKS,
               .help = "data-parallel ranks; default --gpus"},
    [EXPERTS] = {.name = "expert_ranks",
                 .type = MS_PARAM_INT,
                 .low = 1,
                 .high = MOST_RANKS,
                 .help = "stages 2 and 3, ideal: ranks that divide the "
                         "states of experts; default as the rest"},
    [IMPL] = {.name = "impl",
              .type = MS_PARAM_WORD,
              .words = "ideal|megatron|deepspeed",
              .help = "whose buffers: ideal has the rank's gradients, as the "
                      "paper; megatron (stage 1) one fp32 buffer of all "
                      "gradients; deepspeed is the policy of that name, "
                      "whose arguments follow"},
    [PREFETCH] = {.name = "prefetch",
                  .type = MS_PARAM_INT,
                  .fallback = 1,
                  .low = 0,
                  .high = 1000,
                  .help = "stage 3, ideal: how many units ahead parameters are "
                          "gathered"},
    [OVERLAP] = {.name = "overlap_grad_reduce",
                 .type = MS_PARAM_INT,
                 .fallback = 1,
                 .low = 0,
                 .high = 1,
                 .help = "impl=megatron: gradients are reduced beside the last "
                         "backward; 0: all behind it"},
    [GATHER] = {.name = "overlap_param_gather",
                .type = MS_PARAM_INT,
                .low = 0,
                .high = 1,
                .help = "impl=megatron: 1: updated parameters are gathered "
                        "beside the next step's first forward, a unit ahead; "
                        "0: behind the update"},
};

/* ---- shape --------------------------------------------------------------- */

static ms_err shape(const ms_policy_context *context, ms_shape *shape,
                    ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    char where[32];
    snprintf(where, sizeof where, "zero:%d", (int)values[STAGE].number);
    MS_TRY(ms_sharedstates_ranks(&values[RANKS], where, shape, fault));
    MS_TRY(ms_sharedstates_experts(&values[EXPERTS], where, shape, fault));
    shape->shared = (ms_shared)values[STAGE].number;
    if (values[IMPL].given)
        shape->engine = engines[values[IMPL].number];
    shape->holds_gradients = true;
    shape->fp32_gradients = values[IMPL].number == MEGATRON;
    if (shape->fp32_gradients && shape->shared != MS_SHARED_OPTIMIZER)
        return ms_fail(fault, MS_EUSAGE, where, "type zero:1,impl=megatron",
                       "Megatron's distributed optimizer is stage 1");
    if (values[OVERLAP].given && !shape->fp32_gradients)
        return ms_fail(fault, MS_EUSAGE, where,
                       "type zero:1,impl=megatron,overlap_grad_reduce=0",
                       "overlap_grad_reduce is a switch of Megatron's "
                       "distributed optimizer");
    if (values[GATHER].given && !shape->fp32_gradients)
        return ms_fail(fault, MS_EUSAGE, where,
                       "type zero:1,impl=megatron,overlap_param_gather=1",
                       "overlap_param_gather is a switch of Megatron's "
                       "distributed optimizer");
    if (values[GATHER].number == 1 && values[OVERLAP].number == 0)
        return ms_fail(fault, MS_EUSAGE, where, "leave overlap_grad_reduce out",
                       "Megatron-LM refuses overlap_param_gather without "
                       "overlap_grad_reduce");
    if (values[EXPERTS].given && shape->shared < MS_SHARED_GRADIENTS)
        return ms_fail(fault, MS_EUSAGE, where, "take stage 2 or 3",
                       "expert_ranks divide gradients, which this stage does "
                       "not");
    if (values[PREFETCH].given && shape->shared != MS_SHARED_PARAMETERS)
        return ms_fail(fault, MS_EUSAGE, where, "leave prefetch out",
                       "only stage 3 gathers parameters");
    return MS_OK;
}

/* ---- place --------------------------------------------------------------- */

static ms_err place(const ms_policy_context *context, ms_program *program,
                    ms_fault *fault)
{
    ms_sharedstates shares = {
        .shared = (ms_shared)context->values[STAGE].number,
        .units_ahead = (uint32_t)context->values[PREFETCH].number,
        .reduces_at_end = context->values[OVERLAP].number == 0,
        .gathers_ahead = context->values[GATHER].number == 1};
    MS_TRY(ms_sharedstates_need_experts(context, "zero:expert_ranks", fault));
    return ms_sharedstates_write(context, &shares, program, fault);
}

/* Stage 3 looks ahead along the calls of one rank. */
static bool serves_ranks(const ms_policy_value *values)
{
    return values[STAGE].number < MS_SHARED_PARAMETERS;
}

const ms_policy ms_policy_zero = {
    .name = "zero",
    .summary = "data-parallel ranks share optimizer state, gradients, "
               "parameters",
    .example = "zero:3,dp=8",
    .params = params,
    .n_params = N_PARAMS,
    .shape = shape,
    .place = place,
    .serves_ranks = serves_ranks,
};
