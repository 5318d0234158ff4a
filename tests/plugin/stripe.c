/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/common/saved.h"
#include "policies/policies.h"

/* Every Nth block is redone.  What is in no block (head, loss) stays. */
static ms_err keep(const ms_policy_context *context, ms_keep *keep,
                   ms_fault *fault)
{
    const ms_graph *graph = context->graph;
    if (graph->n_blocks == 0)
        return ms_fail(fault, MS_EUSAGE, "stripe", NULL, "no blocks here");
    for (uint32_t op = 0; op < graph->forward_at[graph->n_units]; op++) {
        uint32_t unit = graph->op_unit[op], block = graph->unit_block[unit];
        if (block == MS_NONE || block % context->values[0].number != 0)
            continue;
        keep->segment[unit] = block;
        for (uint32_t i = graph->out_at[op]; i < graph->out_at[op + 1]; i++)
            keep->place[graph->out[i]] = MS_GONE;
    }
    return MS_OK;
}

/* What the others save leaves after its unit, comes back one unit early. */
static ms_err place(const ms_policy_context *context, ms_program *program,
                    ms_fault *fault)
{
    ms_saved saved;
    ms_program made;
    MS_TRY(ms_program_fork(program, context->arena, &made, fault));
    MS_TRY(ms_saved_find(context->graph, program, 1024, context->arena, &made,
                         &saved, fault));
    for (uint32_t i = 0; i < program->n_calls; i++) {
        const ms_call *call = &program->calls[i];
        bool run = call->verb == MS_RUN;
        bool forward = run && call->run.pass == MS_FORWARD;
        uint32_t unit = run && !forward ? call->unit - 1 : call->unit;
        uint32_t block = unit == MS_NONE ? unit : saved.block_of[unit];
        ms_call move = ms_program_call_like(MS_MOVE, call);
        move.move.to = forward ? MS_HOST : MS_HERE;
        if (run && block != MS_NONE && block % context->values[0].number != 0)
            move.set = saved.unit_set[unit];
        if (!forward && move.set != MS_NOTHING)
            MS_TRY(ms_program_add(&made, move, context->arena, fault));
        MS_TRY(ms_program_add(&made, *call, context->arena, fault));
        if (forward && move.set != MS_NOTHING)
            MS_TRY(ms_program_add(&made, move, context->arena, fault));
    }
    *program = made;
    return MS_OK;
}

static const ms_param params[] = {{"every", MS_PARAM_INT, .choice = true,
                                   .low = 1, .high = 1000000,
                                   .help = "recompute one block of N"}};
static const ms_policy stripe = {
    "stripe",
    "one block of N is recomputed, the others wait on the host",
    .params = params,
    .n_params = 1,
    .keep = keep,
    .place = place};
const ms_plugin ms_plugin_entry = {.abi = MS_PLUGIN_ABI, .policy = &stripe};
