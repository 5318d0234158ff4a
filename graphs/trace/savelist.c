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
                  .last = MS_NONE,
                  .is_parameter = saved->parameter != MS_NONE};
    trace->nodes[node].n_saves++;
}

void ms_savelist_turned(ms_trace *trace)
{
    if (!trace->err)
        trace->graph->saves[trace->graph->n_saves - 1].is_parameter = false;
}

/* A node's saves lie together but for those of nodes made meanwhile. */
void ms_savelist_ran(ms_trace *trace, uint32_t n, uint32_t first)
{
    ms_graph *g = trace->graph;
    const ms_node *node = &trace->nodes[n];
    uint32_t last = g->n_ops - 1, left = node->n_saves;
    if (trace->err)
        return;
    for (ms_save *save = g->saves + node->first_save; left > 0; save++) {
        if (save->node != n)
            continue;
        save->is_handed_on = node->holds;
        save->last = last;
        save->first = first < last ? first : last;
        left--;
    }
}

void ms_savelist_close(ms_trace *trace)
{
    ms_graph *g = trace->graph;
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n_saves; i++) {
        ms_save save = g->saves[i];
        if (save.last == MS_NONE)
            continue;
        if (save.is_parameter) /* in whatever format it is packed */
            save.bytes = g->storage_bytes[save.storage];
        g->saves[n++] = save;
    }
    g->n_saves = n;
}
