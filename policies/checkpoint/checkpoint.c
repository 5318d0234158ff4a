/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Activation checkpointing: a segment of blocks saves nothing but its inputs
 * in forward and runs again before its backward. */
#include "policies/checkpoint/chains/chainplan.h"
#include "policies/checkpoint/chains/chen.h"
#include "policies/checkpoint/chains/segmentplan.h"
#include "policies/checkpoint/checkpointrows.h"
#include "policies/checkpoint/secondchoice.h"
#include "policies/checkpoint/segments.h"
#include "policies/checkpoint/selective/cutplan.h"
#include "policies/checkpoint/selective/modules.h"
#include "policies/checkpoint/selective/sac.h"
#include "sim/graph.h"
#include "sim/program.h"

static void drop_core(const ms_graph *graph, ms_keep *keep)
{
    for (uint32_t op = 0; op < graph->forward_at[graph->n_units]; op++) {
        if (!(graph->op_flags[op] & MS_OP_CORE))
            continue;
        for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++)
            keep->place[graph->out[i]] = MS_GONE;
    }
}

/* swap:auto chooses which tensors are made again, because it has measured the
 * step. */
static ms_err check_auto(const ms_policy_context *context, ms_fault *fault)
{
    if (ms_policy_given(context->spec, "swap", "auto") != NULL)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, "checkpoint:auto",
                   "write swap:auto+checkpoint:auto,budget=40GiB",
                   "checkpoint:auto goes with swap:auto only");
}

/* Do blocks cache outputs of some ops? */
static bool caches(const ms_policy_value *values)
{
    return values[MS_CHECKPOINT_SAC].given ||
           values[MS_CHECKPOINT_SAVE].given ||
           values[MS_CHECKPOINT_RECOMPUTE].given;
}

/* A cache of ops needs torch's newer checkpoint. */
static bool is_torch_1(const ms_policy_context *context)
{
    return context->torch_1 && !caches(context->values);
}

static bool stops_early(const ms_policy_context *context)
{
    const ms_policy_value *value = &context->values[MS_CHECKPOINT_EARLY_STOP];
    return value->given ? value->number == 1 : !is_torch_1(context);
}

static bool is_chainplan(const ms_policy_value *values)
{
    return values[MS_CHECKPOINT_OPTIMAL].given ||
           values[MS_CHECKPOINT_REVOLVE].given;
}

static bool is_cutplan(const ms_policy_value *values)
{
    return values[MS_CHECKPOINT_MINCUT].given ||
           values[MS_CHECKPOINT_KNAPSACK].given;
}

/* Is it written as calls, behind the default program? */
static bool plans(const ms_policy_value *values)
{
    return is_chainplan(values) || is_cutplan(values) ||
           values[MS_CHECKPOINT_CHEN].given ||
           values[MS_CHECKPOINT_NESTED].given ||
           values[MS_CHECKPOINT_RECURSIVE].given;
}

/* What blocks cache: torchtitan's choice, or by a list. */
static ms_err read_rule(const ms_policy_context *context, ms_sac_rule *rule,
                        ms_fault *fault)
{
    const ms_policy_value *save = &context->values[MS_CHECKPOINT_SAVE];
    const ms_policy_value *redo = &context->values[MS_CHECKPOINT_RECOMPUTE];
    *rule = (ms_sac_rule){
        .all = context->values[MS_CHECKPOINT_PRODUCTS].number != 0};
    if (save->given)
        return ms_sac_read(context, save->text, "checkpoint:save", false, rule,
                           fault);
    if (redo->given)
        return ms_sac_read(context, redo->text, "checkpoint:recompute", true,
                           rule, fault);
    return MS_OK;
}

static ms_err keep_segments(const ms_policy_context *context,
                            ms_segments *blocks, ms_keep *keep, ms_fault *fault)
{
    ms_sac_rule rule;
    MS_TRY(ms_segments_cut(context, blocks, fault));
    ms_segments_drop(context->graph, blocks, keep);
    if (!caches(context->values))
        return MS_OK;
    MS_TRY(read_rule(context, &rule, fault));
    ms_sac_keep(context->graph, &rule, keep);
    return MS_OK;
}

static ms_err keep(const ms_policy_context *context, ms_keep *keep,
                   ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    const ms_policy_value *variant = &values[MS_CHECKPOINT_VARIANT];
    const ms_policy_value *modules = &values[MS_CHECKPOINT_MODULES];
    ms_segments blocks;
    keep->reentrant = variant->given
                          ? variant->number == MS_CHECKPOINT_REENTRANT
                          : is_torch_1(context);
    keep->early_stop = stops_early(context);
    if (values[MS_CHECKPOINT_AUTO].given)
        return check_auto(context, fault);
    if (context->graph->nodes && !is_chainplan(values) &&
        !values[MS_CHECKPOINT_NONE].given)
        return ms_fail(fault, MS_EUSAGE, "checkpoint",
                       "write checkpoint:optimal,budget=SIZE",
                       "it is about layers in a row: what was measured node by "
                       "node has none");
    if (values[MS_CHECKPOINT_NONE].given || plans(values))
        return MS_OK;
    if (values[MS_CHECKPOINT_SELECTIVE].given)
        drop_core(context->graph, keep);
    if (modules->given)
        MS_TRY(ms_modules_drop(
            context, ms_checkpointrows_params[MS_CHECKPOINT_MODULES].words,
            (uint64_t)modules->number, keep, fault));
    if (values[MS_CHECKPOINT_SELECTIVE].given || modules->given)
        return ms_secondchoice_add(context, NULL, keep, fault);
    MS_TRY(ms_segments_find(context, &blocks, fault));
    MS_TRY(ms_secondchoice_add(context, &blocks, keep, fault));
    return keep_segments(context, &blocks, keep, fault);
}

static bool places(const ms_policy_value *values)
{
    return caches(values) || plans(values);
}

static ms_err place_chainplan(const ms_policy_context *context,
                              ms_program *program, ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    ms_chainplan_choice choice = {
        .slots = (uint32_t)values[MS_CHECKPOINT_SLOTS].number,
        .early_stop = stops_early(context)};
    if (values[MS_CHECKPOINT_REVOLVE].given)
        choice.checkpoints = (uint32_t)values[MS_CHECKPOINT_REVOLVE].number;
    if (values[MS_CHECKPOINT_BUDGET].given)
        choice.budget_bytes = (uint64_t)values[MS_CHECKPOINT_BUDGET].number;
    return ms_chainplan_place(context, &choice, program, fault);
}

static ms_err place(const ms_policy_context *context, ms_program *program,
                    ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    ms_sac_rule rule;
    if (is_chainplan(values))
        return place_chainplan(context, program, fault);
    if (values[MS_CHECKPOINT_CHEN].given)
        return ms_chen_place(context, stops_early(context), program, fault);
    if (is_cutplan(values))
        return ms_cutplan_place(context, program, fault);
    if (plans(values))
        return ms_segmentplan_place(context, stops_early(context), program,
                                    fault);
    if (!caches(values))
        return MS_OK;
    MS_TRY(read_rule(context, &rule, fault));
    return ms_sac_place(context, &rule, program, fault);
}

static bool serves_ranks(const ms_policy_value *values)
{
    (void)values;
    return true;
}

const ms_policy ms_policy_checkpoint = {
    .name = "checkpoint",
    .summary = "save less in forward, recompute it in backward",
    .example = "checkpoint:sqrt",
    .params = ms_checkpointrows_params,
    .n_params = MS_CHECKPOINT_N,
    .saves = true,
    .keep = keep,
    .place = place,
    .places = places,
    .serves_ranks = serves_ranks,
};
