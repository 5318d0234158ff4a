/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which optimizers and settings of the step can be simulated beside which
 * policies. */
#include "graphs/formats/precisions.h"
#include "graphs/optimizer/optimizer.h"
#include "graphs/optimizer/optimtable.h"
#include "graphs/trace/trace.h"

#include <string.h>

static ms_err refuse(const ms_trace *trace, const char *what, const char *hint)
{
    const char *name = ms_updates_of(trace->settings->training)->name;
    return ms_fail(trace->fault, MS_EUSAGE, "training.optimizer", hint,
                   "training.optimizer=%s %s", name, what);
}

static ms_err refuse_key(const ms_trace *trace, const char *key,
                         const char *what, const char *hint)
{
    return ms_fail(trace->fault, MS_EUSAGE, key, hint, "%s is not known %s",
                   key, what);
}

/* Checks the settings of the step beside a policy that has a step of its own.
 */
static ms_err check_settings(const ms_trace *trace)
{
    static const char in_backward[] = "training.optimizer_in_backward";
    const ms_training *training = trace->settings->training;
    const ms_shape *shape = trace->settings->shape;
    bool far = shape->offload.optimizer != MS_DEVICE_POOL ||
               shape->offload.gradients != MS_DEVICE_POOL ||
               shape->offload.parameters != MS_DEVICE_POOL;
    if (training->optimizer_in_backward == 0)
        return MS_OK;
    if (far)
        return refuse_key(trace, in_backward, "beside offload",
                          "the host's step begins when all gradients have "
                          "come: leave one out");
    if (shape->micro_batches > 1)
        return refuse_key(trace, in_backward, "beside micro-batches",
                          "gradients that end cannot be summed up: leave "
                          "microbatch out");
    if (shape->pipeline_ranks > 1)
        return refuse_key(trace, in_backward, "beside pipeline",
                          "a stage updates when the gradients of all its "
                          "micro-batches are there: leave one out");
    if (shape->flat_step.used)
        return refuse_key(trace, in_backward, "to DeepSpeed",
                          shape->flat_step.is_named
                              ? "its engine steps when all gradients are "
                                "there: take zero, fsdp or ddp"
                              : "its engine steps when all gradients are "
                                "there: leave impl=deepspeed out, or take fsdp "
                                "or ddp");
    if (shape->fp32_gradients)
        return refuse_key(trace, in_backward, "to Megatron",
                          "its gradients stay in main_grad to the step: leave "
                          "impl=megatron out, or take fsdp or ddp");
    return MS_OK;
}

/* deepspeedai/DeepSpeed, stage_1_and_2.py: get_flat_partition computes Muon's
 * updates from whole gradients, so that these must not be scattered. */
static ms_err check_deepspeed(const ms_trace *trace)
{
    const ms_shape *shape = trace->settings->shape;
    bool is_named = shape->flat_step.is_named;
    if (shape->flat_step.whole)
        return refuse(trace, "has no matrices in stage 0's flat optimizer",
                      is_named ? "type deepspeed:2,reduce_scatter=0"
                               : "type zero:2,impl=deepspeed,reduce_scatter=0");
    if (shape->shared == MS_SHARED_PARAMETERS)
        return refuse(trace,
                      "is updated bucket by bucket within backward in "
                      "DeepSpeed's stage 3, which is not simulated",
                      is_named ? "type zero:3, or deepspeed:2,reduce_scatter=0"
                               : "type zero:3 without impl=deepspeed, or "
                                 "zero:2,impl=deepspeed,reduce_scatter=0");
    if (ms_precisions_has_sum(trace->settings))
        return refuse(trace,
                      "has no matrices in BF16_Optimizer, which DeepSpeed "
                      "takes for fp32 gradients",
                      "leave training.gradients out");
    if (shape->flat_step.scatters)
        return refuse(trace,
                      "needs whole gradients, which DeepSpeed's reduce_scatter "
                      "leaves no rank",
                      "add reduce_scatter=0");
    return MS_OK;
}

ms_err ms_optimcheck_settings(const ms_trace *trace)
{
    const ms_optimizer_row *row = ms_updates_of(trace->settings->training);
    const ms_shape *shape = trace->settings->shape;
    bool shared =
        shape->shared >= MS_SHARED_OPTIMIZER && ms_shape_parts(shape) > 1;
    if (row == NULL || !trace->settings->train)
        return MS_OK;
    MS_TRY(check_settings(trace));
    if (shape->expert_split > 0 && ms_layerwise_is(trace->settings))
        return refuse(trace,
                      "deals whole matrices out to ranks, which is not known "
                      "where ranks have other experts",
                      "leave impl=megatron out, or take adamw");
    if (shared && !ms_updates_is_shared(row))
        return refuse(trace,
                      "needs whole tensors, but the ranks share them out",
                      "take another optimizer, such as adamw or adamw-8bit, "
                      "or share nothing of it");
    if (shared && row->update->gathers && shape->part == MS_PART_BLOCKS)
        return refuse(trace,
                      "needs matrices, but FSDP1's optimizer sees stretches of "
                      "flat parameters",
                      "take fsdp (fully_shard) or zero");
    bool known = row->update->fused && row->others == NULL;
    if (shape->flat_step.used && row->update->gathers)
        MS_TRY(check_deepspeed(trace));
    else if (shape->flat_step.used && !known)
        return refuse(trace, "is none of DeepSpeed's fused updates",
                      shape->flat_step.is_named
                          ? "take adam, adamw, lion, lamb or sgd, or zero"
                          : "take adam, adamw, lion, lamb or sgd, or leave "
                            "impl=deepspeed out");
    if (shape->offload.selected > 0 && strcmp(row->name, "adam") != 0 &&
        strcmp(row->name, "adamw") != 0)
        return refuse(trace, "is not ZenFlow's, whose updates are Adam's",
                      "take adamw or adam, or leave topk_ratio out");
    if (shape->offload.optimizer != MS_DEVICE_POOL &&
        (row->others != NULL || !ms_updates_is_elementwise(row)))
        return refuse(trace, "has no update on the host",
                      "take adamw, adagrad, lion or sgd beside "
                      "offload:optimizer");
    return MS_OK;
}
