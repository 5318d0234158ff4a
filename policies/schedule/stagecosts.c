/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/schedule/stagecosts.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/replay/collective.h"

typedef struct finder {
    const ms_graph *graph;
    uint8_t *second; /* per op: is it of the weights' half? */
    uint32_t *seen;  /* per storage: by the stage of this number, from 1 up */
} finder;

static bool is_made_before(const finder *f, uint32_t s, uint32_t op)
{
    return s >= f->graph->n_persistent && f->graph->storage_maker[s] < op;
}

/* The bytes that ops [first, end) read of what ops before `before` have made,
 * each once; second: the weights' half alone, but for what it makes itself. */
static uint64_t bytes_read(finder *f, const ms_stage *stage, uint32_t before,
                           bool second, uint32_t mark)
{
    const ms_graph *graph = f->graph;
    uint32_t end = graph->backward_at[stage->first];
    uint64_t bytes = 0;
    for (uint32_t op = graph->backward_at[stage->last + 1]; op < end; op++)
        for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++) {
            uint32_t s = graph->in[i];
            if ((second && !f->second[op]) || !is_made_before(f, s, before) ||
                f->seen[s] == mark ||
                (second && f->second[graph->storage_maker[s]]))
                continue;
            f->seen[s] = mark;
            bytes += graph->storage_bytes[s];
        }
    return bytes;
}

static struct ms_orders_stage costs_of(finder *f, const ms_stage *stage,
                                       uint32_t mark)
{
    const ms_graph *graph = f->graph;
    uint32_t backward = graph->backward_at[graph->n_units];
    struct ms_orders_stage out = {0};
    for (uint32_t op = graph->forward_at[stage->first];
         op < graph->forward_at[stage->last + 1]; op++)
        out.forward_ns += graph->op_ns[op];
    for (uint32_t op = graph->backward_at[stage->last + 1];
         op < graph->backward_at[stage->first]; op++)
        *(f->second[op] ? &out.weight_ns : &out.input_ns) += graph->op_ns[op];
    out.bytes = bytes_read(f, stage, backward, false, mark);
    out.wait_bytes = bytes_read(f, stage, graph->n_ops, true, mark + 1);
    if (out.wait_bytes > out.bytes)
        out.wait_bytes = out.bytes;
    return out;
}

/* What the second stage reads of the first, between neighbours. */
static uint64_t message_ns(const ms_policy_context *context,
                           const ms_stage *stages)
{
    const ms_graph *graph = context->graph;
    uint32_t unit = stages[1].first;
    uint64_t bytes = 0;
    if (context->opts == NULL)
        return 0;
    ms_group pair = context->opts->groups[MS_GROUP_PIPELINE];
    pair.ranks = 2;
    for (uint32_t i = graph->unit_in_at[unit]; i < graph->unit_in_at[unit + 1];
         i++)
        bytes += graph->storage_bytes[graph->unit_in[i]];
    return ms_collective_ns(&pair, MS_SEND, bytes);
}

ms_err ms_stagecosts_find(const ms_policy_context *context,
                          const ms_stage *stages, uint32_t n,
                          ms_orders_costs *costs, ms_fault *fault)
{
    const ms_graph *graph = context->graph;
    ms_arena *arena = context->arena;
    finder f = {.graph = graph,
                .second = ms_arena_take_raw(arena, graph->n_ops, 1),
                .seen =
                    ms_arena_take(arena, graph->n_storages, sizeof *f.seen)};
    costs->stages = ms_arena_take(arena, n, sizeof *costs->stages);
    if (!f.second || !f.seen || !costs->stages)
        return ms_fail_nomem(fault);
    ms_stage_halves(graph, f.second);
    for (uint32_t k = 0; k < n; k++)
        costs->stages[k] = costs_of(&f, &stages[k], 2 * k + 1);
    costs->message_ns = n > 1 ? message_ns(context, stages) : 0;
    return MS_OK;
}
