/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/solve/nodedag.h"
#include "sim/graph.h"

ms_err ms_nodedag_find(const ms_graph *graph, ms_arena *arena, ms_nodedag *dag,
                       ms_fault *fault)
{
    uint64_t *bytes = ms_arena_take(arena, graph->n_ops + 1u, sizeof *bytes);
    uint8_t *is_backward = ms_arena_take(arena, graph->n_ops + 1u, 1);
    if (bytes == NULL || is_backward == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t op = 0; op < graph->n_ops; op++) {
        if (graph->out_at[op + 1] != graph->out_at[op] + 1 ||
            graph->out[graph->out_at[op]] != op || graph->in_via != NULL)
            return ms_fail(fault, MS_EUSAGE, "checkpoint",
                           "write dtr:budget=SIZE",
                           "ops of a log make several tensors, and views: they "
                           "are no DAG of nodes");
        bytes[op] = graph->storage_bytes[op];
        is_backward[op] = graph->op_pass[op] != MS_FORWARD;
    }
    *dag = (ms_nodedag){.n = graph->n_ops,
                        .cost_ns = graph->op_ns,
                        .bytes = bytes,
                        .dep_at = graph->in_at,
                        .dep = graph->in,
                        .is_backward = is_backward};
    return MS_OK;
}

ms_err ms_nodedag_add(ms_nodeplan *plan, ms_nodeact act, uint32_t id,
                      ms_arena *arena, ms_fault *fault)
{
    if (plan->n == plan->capacity) {
        uint32_t *items = ms_arena_grow(arena, plan->items, &plan->capacity,
                                        plan->n + 1, sizeof *items);
        if (items == NULL)
            return ms_fail_nomem(fault);
        plan->items = items;
    }
    plan->items[plan->n++] = MS_NODEPLAN(act, id);
    return MS_OK;
}
