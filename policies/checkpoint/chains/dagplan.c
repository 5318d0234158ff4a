/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/checkpoint/chains/dagplan.h"
#include "policies/solve/blocks/blockplan.h"
#include "policies/solve/nodecalls.h"
#include "sim/base/size.h"
#include "sim/graph.h"
#include "sim/program.h"

#include <inttypes.h>

/* The block for which there is no menu. */
static ms_err refuse_block(const ms_graph *graph, const ms_dagblocks *blocks,
                           uint32_t block, ms_fault *fault)
{
    uint32_t first = blocks->forward_at[block];
    uint32_t end = blocks->forward_at[block + 1];
    uint32_t n = end - first + blocks->backward_at[block + 1] -
                 blocks->backward_at[block];
    const char *hint =
        "dtr:budget=SIZE runs any DAG, without a claim that it is the best";
    if (blocks->n == 1)
        return ms_fail(fault, MS_EUSAGE, "checkpoint:optimal", hint,
                       "edges go over every node: there is no cut point, and "
                       "%" PRIu32 " nodes are too many for a search of all "
                       "their orders",
                       n);
    return ms_fail(fault, MS_EUSAGE, "checkpoint:optimal", hint,
                   "no cut point lies between \"%s\" and \"%s\": these "
                   "%" PRIu32 " nodes, those of backward included, are too "
                   "many for a search of all their orders",
                   graph->unit_name[blocks->forward[first]],
                   graph->unit_name[blocks->forward[end - 1]], n);
}

static const char *tell(const ms_dagblocks *blocks, const ms_blockplan *plan,
                        ms_arena *arena)
{
    char unit[MS_SIZE_COUNT];
    uint32_t largest = 0;
    for (uint32_t b = 0; b < blocks->n; b++) {
        uint32_t n = blocks->forward_at[b + 1] - blocks->forward_at[b] +
                     blocks->backward_at[b + 1] - blocks->backward_at[b];
        largest = n > largest ? n : largest;
    }
    ms_size_count(plan->unit_bytes, unit);
    return ms_arena_format(
        arena,
        "the best persistent one over %" PRIu32 " cut points, with menus "
        "of exhaustive searches inside the blocks (up to %" PRIu32
        " nodes)%s%s%s",
        blocks->n - 1, largest, plan->exact ? "" : "; sizes rounded up to ",
        plan->exact ? "" : unit, plan->exact ? "" : " bytes");
}

/* The DAG as blocks in a row. */
static ms_err find_blockplan(const ms_policy_context *context,
                             const ms_nodedag *dag, uint64_t budget_bytes,
                             ms_program *program, ms_nodeplan *plan,
                             ms_fault *fault)
{
    ms_dagblocks blocks;
    ms_blockmenus menus = {.unsolved = 0};
    ms_blockplan found;
    ms_arena *arena = context->arena;
    MS_TRY(ms_dagblocks_find(dag, arena, &blocks, fault));
    if (blocks.n > 1)
        MS_TRY(ms_blockmenu_find(dag, &blocks, arena, &menus, fault));
    if (menus.unsolved != MS_NONE)
        return refuse_block(context->graph, &blocks, menus.unsolved, fault);
    MS_TRY(ms_blockplan_find(dag, &blocks, &menus, budget_bytes, arena, &found,
                             fault));
    *plan = found.plan;
    program->foreseen =
        (ms_foreseen){.step_ns = found.time_ns,
                      .best = MS_BEST_CUT_POINTS,
                      .unit_bytes = found.exact ? 0 : found.unit_bytes};
    program->told = tell(&blocks, &found, arena);
    return program->told == NULL ? ms_fail_nomem(fault) : MS_OK;
}

ms_err ms_dagplan_place(const ms_policy_context *context, uint64_t budget_bytes,
                        ms_program *program, ms_fault *fault)
{
    ms_nodedag dag;
    ms_pebble pebble;
    ms_arena *arena = context->arena;
    MS_TRY(ms_nodedag_find(context->graph, arena, &dag, fault));
    MS_TRY(ms_pebble_find(&dag, budget_bytes, arena, &pebble, fault));
    if (pebble.ended) {
        program->told = "the least time of all orders, gradients made again "
                        "too (pebbling)";
        program->foreseen = (ms_foreseen){.step_ns = pebble.time_ns,
                                          .best = MS_BEST_ALL_ORDERS};
    } else {
        MS_TRY(find_blockplan(context, &dag, budget_bytes, program,
                              &pebble.plan, fault));
    }
    return ms_nodecalls_write(context->graph, &pebble.plan, arena, program,
                              fault);
}
