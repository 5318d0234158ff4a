/* SPDX-License-Identifier: GPL-3.0-or-later */
/* torch's fully sharded data parallelism: fully_shard (FSDP2, impl=2) and
 * FullyShardedDataParallel (FSDP1, impl=1).  Ranks hold a part of each weight,
 * gradient and optimizer state; a unit's weights are whole while it runs
 * (policies/share/unshard.h has the events and their sources).
 *
 * With mixed precision the parts are fp32 and their own master copies, what is
 * gathered has the weights' 16 bits: MixedPrecisionPolicy(param_dtype=bf16,
 * reduce_dtype=fp32), as torchtitan sets it.  masters=optimizer: the module has
 * 16 bits when it is wrapped, and so have its parts and their gradients; the
 * optimizer holds fp32 copies of both (InternEvo's FSDPadaptOptimizer,
 * internlm/solver/optimizer/fsdp_optimizer.py).
 *
 * code=megatron: Megatron-FSDP (NVIDIA/Megatron-LM, megatron/core/distributed/
 * fsdp/src/megatron_fsdp/megatron_fsdp.py).  Its units are layers; parameters
 * of other modules are gathered where they run, and nobody lets them go before
 * the update (_pre_forward_param_unshard, bucket_can_be_released).  Where
 * gathers run beside forward, the first bucket, which these are in, is whole
 * again behind the update. */
#include "policies/share/sharedstates.h"
#include "policies/share/unshard.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    IMPL,
    RANKS,
    SHARD,
    EXPERTS,
    UNITS,
    RESHARD,
    RESHARD_RANKS,
    STRATEGY,
    PREFETCH,
    FORWARD_PREFETCH,
    LIMIT,
    REDUCE,
    COPY_IN,
    SYNC,
    MASTERS,
    CODE,
    PARAM_GATHER,
    N_PARAMS
};
enum { FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD };
enum { REDUCE_FP32, REDUCE_BF16 };
enum { MASTERS_PARTS, MASTERS_OPTIMIZER };
enum { SYNC_EACH, SYNC_LAST };
enum { CODE_TORCH, CODE_MEGATRON };

#define MOST_RANKS 65536

static const ms_param params[N_PARAMS] = {
    [IMPL] = {.name = "impl",
              .type = MS_PARAM_INT,
              .fallback = 2,
              .low = 1,
              .high = 2,
              .help = "2: fully_shard; 1: FullyShardedDataParallel"},
    [RANKS] = {.name = "dp",
               .type = MS_PARAM_INT,
               .low = 1,
               .high = MOST_RANKS,
               .help = "data-parallel ranks; default --gpus"},
    [SHARD] = {.name = "shard",
               .type = MS_PARAM_INT,
               .low = 1,
               .high = MOST_RANKS,
               .help = "ranks that divide the states, where groups of them "
                       "hold copies (HSDP); default all"},
    [EXPERTS] = {.name = "expert_ranks",
                 .type = MS_PARAM_INT,
                 .low = 1,
                 .high = MOST_RANKS,
                 .help = "impl 2: ranks that divide the states of experts, a "
                         "unit of their own in each block; default as the "
                         "rest"},
    [UNITS] = {.name = "units",
               .type = MS_PARAM_WORD,
               .words = "blocks|split|whole",
               .help = "what is one unit: each block, the rest being the "
                       "root's; split: what is before and behind the blocks "
                       "too; the whole model"},
    [RESHARD] = {.name = "reshard",
                 .type = MS_PARAM_WORD,
                 .words = "yes|no|but_last",
                 .help = "impl 2, after forward: units let their weights go; "
                         "keep them for backward; only the last one keeps "
                         "them (torchtitan); default yes, beside pipeline no"},
    [RESHARD_RANKS] = {.name = "reshard_ranks",
                       .type = MS_PARAM_INT,
                       .low = 2,
                       .high = MOST_RANKS,
                       .help = "impl 2, after forward: so many neighbours "
                               "divide the weights (reshard_after_forward=K)"},
    [STRATEGY] = {.name = "strategy",
                  .type = MS_PARAM_WORD,
                  .words = "full_shard|shard_grad_op|no_shard|hybrid_shard",
                  .help = "impl 1: ShardingStrategy; hybrid_shard needs "
                          "shard="},
    [PREFETCH] = {.name = "prefetch",
                  .type = MS_PARAM_WORD,
                  .words = "pre|post|none",
                  .help = "impl 1, backward: the next unit is gathered before "
                          "a unit's backward, after it, when it runs"},
    [FORWARD_PREFETCH] = {.name = "forward_prefetch",
                          .type = MS_PARAM_INT,
                          .low = 0,
                          .high = 1,
                          .help = "impl 1: the next unit is gathered before a "
                                  "unit's forward"},
    [LIMIT] = {.name = "limit",
               .type = MS_PARAM_INT,
               .fallback = 1,
               .low = 0,
               .high = 1,
               .help = "impl 1: limit_all_gathers, at most two in flight"},
    [REDUCE] = {.name = "reduce",
                .type = MS_PARAM_WORD,
                .words = "fp32|bf16",
                .help = "format in which gradients are summed; default that "
                        "of the parts"},
    [COPY_IN] = {.name = "copy_in",
                 .type = MS_PARAM_WORD,
                 .words = "compute|reduce",
                 .help = "impl 2: the stream that copies a reduce-scatter's "
                         "input and whose memory that is; reduce: the "
                         "reductions' own, torch up to 2.4; default compute"},
    [SYNC] = {.name = "sync",
              .type = MS_PARAM_WORD,
              .words = "each|last",
              .help = "gradients are summed after each micro-batch, or kept "
                      "whole until the last (always, beside pipeline)"},
    [MASTERS] = {.name = "masters",
                 .type = MS_PARAM_WORD,
                 .words = "parts|optimizer",
                 .help = "where 16-bit weights have their fp32 copies: parts "
                         "are fp32 (MixedPrecision); parts have 16 bits, and "
                         "the optimizer has copies of its own (InternEvo)"},
    [CODE] = {.name = "code",
              .type = MS_PARAM_WORD,
              .words = "torch|megatron",
              .help = "megatron: Megatron-FSDP (optim_grads_params), whose "
                      "masters are the optimizer's and whose gradients of "
                      "parts are there all through the step"},
    [PARAM_GATHER] = {.name = "overlap_param_gather",
                      .type = MS_PARAM_INT,
                      .low = 0,
                      .high = 1,
                      .help = "code=megatron: what is in no block is gathered "
                              "again when the weights are updated"},
};

static bool is_old(const ms_policy_value *values)
{
    return values[IMPL].number == 1;
}

static bool is_megatron(const ms_policy_value *values)
{
    return values[CODE].number == CODE_MEGATRON;
}

/* Megatron-FSDP's hooks are those of FSDP2, and its masters the optimizer's. */
static ms_err check_code(const ms_policy_value *values, ms_fault *fault)
{
    bool megatron = is_megatron(values);
    if (megatron && is_old(values))
        return ms_fail(fault, MS_EUSAGE, "fsdp:code=megatron",
                       "leave impl=1 out",
                       "it has no FullyShardedDataParallel");
    if (megatron && values[MASTERS].given &&
        values[MASTERS].number == MASTERS_PARTS)
        return ms_fail(fault, MS_EUSAGE, "fsdp:code=megatron",
                       "leave masters=parts out",
                       "its optimizer has the fp32 copies");
    if (values[PARAM_GATHER].number && values[UNITS].given)
        return ms_fail(fault, MS_EUSAGE, "fsdp:overlap_param_gather",
                       "leave units= out, or overlap_param_gather",
                       "Megatron-FSDP's units are blocks");
    if (!megatron && values[PARAM_GATHER].given)
        return ms_fail(fault, MS_EUSAGE, "fsdp:overlap_param_gather",
                       "add code=megatron, or leave it out",
                       "torch's FSDP has no such setting");
    return MS_OK;
}

/* Parameters that only the other implementation has. */
static ms_err check_impl(const ms_policy_value *values, ms_fault *fault)
{
    static const uint8_t of_old[] = {STRATEGY, PREFETCH, FORWARD_PREFETCH,
                                     LIMIT};
    char hint[64];
    if (is_old(values) && values[COPY_IN].given)
        return ms_fail(fault, MS_EUSAGE, "fsdp:copy_in", "leave it out",
                       "FSDP1 copies on the reductions' stream always");
    if (is_old(values) && values[RESHARD].given)
        return ms_fail(fault, MS_EUSAGE, "fsdp:reshard",
                       "say strategy=shard_grad_op to keep them",
                       "FSDP1 has no reshard_after_forward");
    for (size_t i = 0; i < sizeof of_old && !is_old(values); i++) {
        const char *name = params[of_old[i]].name;
        if (!values[of_old[i]].given)
            continue;
        snprintf(hint, sizeof hint, "leave %s out, or add impl=1", name);
        return ms_fail(fault, MS_EUSAGE, "fsdp", hint,
                       "%s is FSDP1's; fully_shard does not have it", name);
    }
    return MS_OK;
}

static ms_err check_reshard(const ms_policy_value *values, uint32_t ranks,
                            ms_fault *fault)
{
    int64_t some = values[RESHARD_RANKS].number;
    char where[48];
    if (!values[RESHARD_RANKS].given)
        return MS_OK;
    snprintf(where, sizeof where, "fsdp:reshard_ranks=%" PRId64, some);
    if (is_old(values))
        return ms_fail(fault, MS_EUSAGE, where, "leave it out, or impl=1",
                       "FSDP1 has no reshard_after_forward");
    if (values[SHARD].given || values[RESHARD].number == MS_UNSHARD_STAY)
        return ms_fail(fault, MS_EUSAGE, where, "leave one of the two out",
                       "it contradicts %s",
                       values[SHARD].given ? "shard=" : "reshard=no");
    return ms_policy_check_groups(where, "reshard_ranks=", ranks,
                                  (uint32_t)some, fault);
}

static ms_err check_shard(const ms_policy_value *values, uint32_t ranks,
                          ms_fault *fault)
{
    int64_t strategy = values[STRATEGY].number, shard = values[SHARD].number;
    char where[48];
    if (strategy == HYBRID_SHARD && !values[SHARD].given)
        return ms_fail(
            fault, MS_EUSAGE, "fsdp:strategy=hybrid_shard",
            "add shard=8, for example the GPUs of a node",
            "the number of ranks that divide the states is not given");
    if (!values[SHARD].given)
        return MS_OK;
    snprintf(where, sizeof where, "fsdp:shard=%" PRId64, shard);
    if (values[STRATEGY].given && strategy != HYBRID_SHARD &&
        strategy != SHARD_GRAD_OP)
        return ms_fail(fault, MS_EUSAGE, where, "say strategy=hybrid_shard",
                       "this strategy has no groups");
    return ms_policy_check_groups(where, "shard=", ranks, (uint32_t)shard,
                                  fault);
}

/* The parts of experts lie on ranks that are no neighbours. */
static ms_err check_experts(const ms_policy_value *values, ms_fault *fault)
{
    if (!values[EXPERTS].given)
        return MS_OK;
    if (is_old(values))
        return ms_fail(fault, MS_EUSAGE, "fsdp:expert_ranks",
                       "leave it out, or impl=1",
                       "FSDP1 flattens a unit's parameters together");
    if (values[RESHARD_RANKS].given)
        return ms_fail(fault, MS_EUSAGE, "fsdp:expert_ranks",
                       "leave one of the two out",
                       "reshard_ranks are neighbours, which hold the same "
                       "part of experts");
    return MS_OK;
}

/* torch.distributed.pipelining serves fully_shard, and sums a stage's gradients
 * once. */
static ms_err check_stages(const ms_policy_value *values, ms_fault *fault)
{
    if (is_old(values))
        return ms_fail(fault, MS_EUSAGE, "fsdp:impl=1",
                       "leave impl=1 out beside pipeline",
                       "torch's pipelines serve fully_shard, not "
                       "FullyShardedDataParallel");
    if (is_megatron(values))
        return ms_fail(fault, MS_EUSAGE, "fsdp:code=megatron",
                       "take fsdp or zero:1,impl=megatron beside pipeline",
                       "memsim does not know how Megatron-FSDP shares a stage "
                       "of a pipeline");
    if (values[SYNC].given && values[SYNC].number == SYNC_EACH)
        return ms_fail(fault, MS_EUSAGE, "fsdp:sync=each",
                       "leave it out beside pipeline",
                       "a stage of a pipeline keeps its gradients whole until "
                       "its last backward");
    return MS_OK;
}

/* Do the parts have the weights' 16 bits? */
static bool has_masters_apart(const ms_policy_value *values)
{
    return is_megatron(values) || values[MASTERS].number == MASTERS_OPTIMIZER;
}

/* The format in which gradients are summed: as reduce= says, or the parts'. */
static bool sums_fp32(const ms_policy_value *values)
{
    if (values[REDUCE].given)
        return values[REDUCE].number == REDUCE_FP32;
    return !has_masters_apart(values);
}

/* FSDP1's flat weights, where one rank has all of them, are used as they are,
 * unless they have another format than the ops (NO_SHARD, which one rank alone
 * always has: torch 2.0, fsdp/_init_utils.py, _init_core_state). */
static ms_err use_in_place(const ms_policy_value *values, ms_shape *shape,
                           ms_fault *fault)
{
    char hint[48];
    if (!is_old(values) || !has_masters_apart(values) ||
        ms_shape_parts(shape) > 1)
        return MS_OK;
    snprintf(hint, sizeof hint, "say ddp:dp=%u", shape->data_ranks);
    if (shape->data_ranks > 1)
        return ms_fail(fault, MS_EUSAGE, "fsdp:masters=optimizer", hint,
                       "where nobody divides the weights it is DDP");
    shape->shared = MS_SHARED_NOTHING;
    shape->copies_parts = false;
    return MS_OK;
}

static ms_err shape(const ms_policy_context *context, ms_shape *shape,
                    ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    bool staged = shape->pipeline_ranks > 1;
    bool last = (values[SYNC].number || staged) && shape->micro_batches > 1;
    MS_TRY(check_impl(values, fault));
    MS_TRY(check_code(values, fault));
    MS_TRY(ms_sharedstates_ranks(&values[RANKS], "fsdp", shape, fault));
    MS_TRY(check_shard(values, shape->data_ranks, fault));
    MS_TRY(check_reshard(values, shape->data_ranks, fault));
    MS_TRY(check_experts(values, fault));
    if (staged)
        MS_TRY(check_stages(values, fault));
    MS_TRY(ms_sharedstates_experts(&values[EXPERTS], "fsdp:expert_ranks", shape,
                                   fault));
    shape->reshard_ranks = (uint32_t)values[RESHARD_RANKS].number;
    shape->shared = MS_SHARED_PARAMETERS;
    /* FSDP2 divides each parameter by its rows, FSDP1 each unit's parameters as
     * one flat one. */
    shape->part = MS_PART_ROWS;
    if (is_old(values))
        shape->part = values[UNITS].number == MS_UNSHARD_WHOLE ? MS_PART_FLAT
                                                               : MS_PART_BLOCKS;
    shape->part_is_master = !has_masters_apart(values);
    shape->holds_gradients = is_megatron(values);
    shape->root_stays = values[PARAM_GATHER].number;
    shape->copies_parts = true;
    if (values[SHARD].given)
        shape->shard_ranks = (uint32_t)values[SHARD].number;
    else if (values[STRATEGY].number == NO_SHARD)
        shape->shard_ranks = 1;
    /* set_requires_gradient_sync(False): whole gradients accumulate in the
     * format of the sum; FSDP1's in that of the weights. */
    shape->fp32_gradients = last && !is_old(values) && sums_fp32(values);
    shape->sums_late = last && !is_old(values) && !is_megatron(values);
    return use_in_place(values, shape, fault);
}

static ms_err place(const ms_policy_context *context, ms_program *program,
                    ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    bool staged = context->shape->pipeline_ranks > 1;
    bool stays =
        values[STRATEGY].number == SHARD_GRAD_OP ||
        values[STRATEGY].number == NO_SHARD ||
        (staged && !values[RESHARD].given && !values[RESHARD_RANKS].given);
    ms_unshard options = {
        .flat = is_old(values),
        .units = (ms_unshard_units)values[UNITS].number,
        .keep =
            stays ? MS_UNSHARD_STAY : (ms_unshard_keep)values[RESHARD].number,
        .prefetch = (ms_unshard_prefetch)values[PREFETCH].number,
        .forward_prefetch = values[FORWARD_PREFETCH].number,
        .limit = is_old(values) && values[LIMIT].number,
        .reshard_ranks = (uint32_t)values[RESHARD_RANKS].number,
        .last_only = values[SYNC].number || staged,
        .stays = !is_old(values) && !is_megatron(values),
        .staged = staged,
        .copies_apart = values[COPY_IN].number,
        .again = values[PARAM_GATHER].number,
        .reduced_bytes = values[REDUCE].given
                             ? (values[REDUCE].number == REDUCE_FP32 ? 4 : 2)
                             : 0};
    if (context->shape->shared == MS_SHARED_NOTHING)
        return MS_OK;
    MS_TRY(ms_sharedstates_need_experts(context, "fsdp:expert_ranks", fault));
    return ms_unshard_write(context, &options, program, fault);
}

/* Each stage is a module of its own. */
static bool serves_ranks(const ms_policy_value *values)
{
    (void)values;
    return true;
}

const ms_policy ms_policy_fsdp = {
    .name = "fsdp",
    .summary = "torch's FSDP: ranks divide all states, units are gathered to "
               "run",
    .example = "fsdp:dp=8",
    .params = params,
    .n_params = N_PARAMS,
    .shape = shape,
    .place = place,
    .serves_ranks = serves_ranks,
};
