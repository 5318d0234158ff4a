/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/trace/savelist.h"
#include "graphs/trace/columns.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

void ms_savelist_add(ms_trace *trace, uint32_t node, uint32_t tensor)
{
    ms_graph *g = trace->graph;
    if (trace->err || node == MS_NONE || tensor == MS_NONE ||
        !ms_columns_grow(trace, trace->arena, &g->saves, &trace->saves_capacity,
                         g->n_saves + 1, sizeof *g->saves))
        return;
    const ms_tensor *saved = ms_trace_at(trace, tensor);
    g->saves[g->n_saves++] =
        (ms_save){.bytes = ms_trace_bytes(saved),
                  .storage = saved->storage,
                  .node = node,
                  .op = g->n_ops - 1,
                  .is_parameter = saved->parameter != MS_NONE};
}

void ms_savelist_turned(ms_trace *trace)
{
    if (!trace->err)
        trace->graph->saves[trace->graph->n_saves - 1].is_parameter = false;
}

void ms_savelist_close(ms_trace *trace)
{
    ms_graph *g = trace->graph;
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n_saves; i++) {
        ms_save save = g->saves[i];
        const ms_node *node = &trace->nodes[save.node];
        if (!node->ran)
            continue;
        if (save.is_parameter) /* in whatever format it is packed */
            save.bytes = g->storage_bytes[save.storage];
        save.is_handed_on = node->holds;
        save.last = node->last_op;
        save.first = node->first_op < save.last ? node->first_op : save.last;
        g->saves[n++] = save;
    }
    g->n_saves = n;
}
