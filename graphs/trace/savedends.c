/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/trace/savedends.h"
#include "graphs/trace/columns.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

void ms_savedends_hold(ms_trace *trace, uint32_t node)
{
    if (node == MS_NONE || trace->err)
        return;
    ms_node *saver = &trace->nodes[node];
    saver->holds = trace->inner == NULL;
    for (uint32_t i = 0; i < saver->n_saved && saver->holds; i++)
        trace->counts[ms_trace_at(trace, saver->saved[i])->storage].saves++;
}

/* One save more of the storage ends with the tensors made from here on. */
static void give(ms_trace *trace, uint32_t storage)
{
    const ms_storage_count *count = &trace->counts[storage];
    ms_given *it = ms_trace_given(trace, storage);
    if (it != NULL)
        it->saves++;
    else if (!count->persistent &&
             ms_columns_grow(trace, trace->scratch, &trace->given,
                             &trace->given_capacity, trace->n_given + 1,
                             sizeof *trace->given))
        trace->given[trace->n_given++] = (ms_given){
            .storage = storage, .saves = 1, .others = count->tensors};
}

/* What a node has saved, as a tensor of its own: no variable may name the one
 * that was saved any more. */
static uint32_t unpack(ms_trace *trace, uint32_t tensor)
{
    ms_tensor *saved = ms_trace_at(trace, tensor);
    if (trace->inner == NULL)
        give(trace, saved->storage);
    if (saved->refs > 0)
        return ms_trace_alias(trace, tensor);
    saved->refs = 1;
    trace->counts[saved->storage].tensors++;
    return tensor;
}

void ms_savedends_give(ms_trace *trace, const ms_node *node, uint32_t *out)
{
    for (uint32_t i = 0; i < node->n_inputs && !trace->err; i++) {
        uint32_t saved = node->saved[i];
        if (node->needs[i])
            out[i] = unpack(trace, saved);
        else if (trace->inner == NULL)
            ms_trace_end_saves(trace, ms_trace_at(trace, saved)->storage, 1);
    }
}

void ms_savedends_release(ms_trace *trace, const ms_node *node)
{
    for (uint32_t i = 0; i < node->n_saved && !trace->err; i++) {
        uint32_t s = ms_trace_at(trace, node->saved[i])->storage;
        ms_trace_end_saves(trace, s, 1);
    }
}

void ms_savedends_forget(ms_trace *trace, const ms_node *node)
{
    for (uint32_t i = 0; i < node->n_saved; i++) {
        uint32_t s = ms_trace_at(trace, node->saved[i])->storage;
        if (trace->counts[s].persistent)
            continue;
        /* ms_savedends_hold has counted each save once more. */
        trace->counts[s].saves -= node->holds ? 2u : 1u;
        if (trace->counts[s].saves == 0)
            trace->graph->storage_category[s] = MS_TEMPORARIES;
    }
}
