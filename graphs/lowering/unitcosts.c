/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/lowering/unitcosts.h"

#include "graphs/trace/trace.h"
#include "sim/graph.h"
#include "sim/kinds.h"

/* The multiply-adds of a product, for one token (of images, for one image):
 * whole numbers, whose sums are exact. */
static double macs_of(const ms_trace *trace, uint32_t op)
{
    const ms_graph *g = trace->graph;
    const ms_step_settings *settings = trace->settings;
    uint64_t tokens = settings->sequence > 0 ? settings->sequence : 1;
    if (ms_kinds_is_attention(g->op_kind[op]) ||
        !(g->op_flags[op] & MS_OP_MATRIX))
        return 0;
    return g->op_flops[op] / 2 / ((double)settings->batch * (double)tokens);
}

/* The ops of a layer stand together. */
static double cost_of(const ms_trace *trace, uint32_t unit)
{
    const ms_graph *g = trace->graph;
    const ms_layer *layers = trace->settings->model->layers;
    uint32_t end = g->forward_at[unit + 1];
    double cost = 0;
    for (uint32_t op = g->forward_at[unit]; op < end;) {
        uint32_t layer = g->op_layer[op];
        double macs = 0;
        for (; op < end && g->op_layer[op] == layer; op++)
            macs += macs_of(trace, op);
        if (layer != MS_NONE)
            cost += trace->kernels.hooks->stage_cost(&layers[layer], macs);
    }
    return cost;
}

ms_err ms_unitcosts_fill(ms_trace *trace)
{
    ms_graph *g = trace->graph;
    if (trace->kernels.hooks->stage_cost == NULL || g->n_blocks == 0 ||
        trace->settings->model->ops != NULL)
        return MS_OK;
    g->unit_cost =
        ms_arena_take(trace->arena, g->n_units, sizeof *g->unit_cost);
    if (g->unit_cost == NULL)
        return ms_fail_nomem(trace->fault);
    for (uint32_t u = 0; u < g->n_units; u++)
        g->unit_cost[u] = cost_of(trace, u);
    return MS_OK;
}
