/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/checkpoint/chains/chainparts.h"
#include "policies/checkpoint/chains/cuts.h"
#include "sim/graph.h"
#include "sim/schedule/schedule.h"

/* A stage without units stands for the loss; it is no block, nor is that. */
static ms_err number_blocks(const ms_policy_context *context,
                            ms_chainparts *parts, uint32_t k, ms_fault *fault)
{
    const ms_graph *graph = context->graph;
    const ms_stages *stages = &parts->of[k];
    uint32_t *block =
        ms_arena_take_raw(context->arena, stages->chain.n + 2u, sizeof *block);
    if (block == NULL)
        return ms_fail_nomem(fault);
    parts->block[k] = block;
    parts->n_blocks[k] = 0;
    for (uint32_t l = 1; l <= stages->chain.n; l++) {
        bool is_one = graph->n_blocks == 0
                          ? l < stages->chain.n
                          : stages->first[l] <= stages->last[l] &&
                                graph->unit_block[stages->first[l]] != MS_NONE;
        block[l] = is_one ? parts->n_blocks[k]++ : MS_NONE;
    }
    return MS_OK;
}

ms_err ms_chainparts_blocks(const ms_chainparts *parts, uint32_t *most,
                            ms_fault *fault)
{
    *most = 0;
    for (uint32_t k = 0; k < parts->n; k++)
        if (parts->n_blocks[k] > *most)
            *most = parts->n_blocks[k];
    if (*most > 0)
        return MS_OK;
    return ms_cuts_fail_none(fault);
}

ms_err ms_chainparts_find(const ms_policy_context *context,
                          ms_chainparts *parts, ms_fault *fault)
{
    const ms_schedule *schedule = context->schedule;
    const ms_graph *graph = context->graph;
    ms_arena *arena = context->arena;
    parts->n = schedule->n_stages;
    parts->of = ms_arena_take_raw(arena, parts->n, sizeof *parts->of);
    parts->block = ms_arena_take_raw(arena, parts->n, sizeof *parts->block);
    parts->n_blocks =
        ms_arena_take_raw(arena, parts->n, sizeof *parts->n_blocks);
    if (parts->of == NULL || parts->block == NULL || parts->n_blocks == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t k = 0; k < parts->n; k++) {
        MS_TRY(ms_stages_find(graph, &schedule->stages[k], arena, &parts->of[k],
                              fault));
        MS_TRY(number_blocks(context, parts, k, fault));
    }
    return ms_schedule_stage_of(graph, schedule, arena, &parts->of_unit, fault);
}
