/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/opgraph/opunknown.h"

#include "graphs/json/index.h"
#include "graphs/opgraph/opcast.h"
#include "graphs/trace/columns.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

static void unknown_backward(ms_trace *trace, const ms_node *node,
                             const uint32_t *grads, uint32_t *out)
{
    ms_trace_begin_backward(trace, node, grads[0]);
    for (uint32_t i = 0; i < node->n_inputs && !trace->err; i++)
        if (node->needs[i])
            out[i] = ms_trace_make_like(trace, "grad", node->input[i]);
    ms_trace_end(trace, 2 * node->flops, false);
}

static const ms_rule unknown_rule = {"UnknownBackward0", "unknown_backward",
                                     unknown_backward};

static bool is_float(const ms_trace *trace, uint32_t tensor)
{
    uint8_t dtype = ms_trace_at(trace, tensor)->dtype;
    return dtype != MS_INT64 && dtype != MS_INT32 && dtype != MS_BYTE;
}

void ms_opunknown_record(ms_trace *trace, const ms_aten_call *call)
{
    const ms_opnode *op = call->node;
    uint32_t n_out = 0;
    if (trace->err)
        return;
    uint32_t *out = ms_columns_take(trace, op->n_out, sizeof *out);
    if (!out)
        return;
    for (uint32_t k = 0; k < op->n_out; k++)
        if (is_float(trace, call->out[k]))
            out[n_out++] = call->out[k];
    if (n_out == 0)
        return;
    uint32_t n =
        ms_trace_node(trace, &unknown_rule, call->in, op->n_in, out, n_out);
    if (n == MS_NONE)
        return;
    trace->nodes[n].flops = op->flops > 0 ? op->flops : 0;
    for (uint32_t i = 0; i < op->n_in; i++)
        ms_trace_save(trace, n, call->in[i]);
    for (uint32_t k = 0; k < op->n_out; k++)
        ms_trace_save(trace, n, call->out[k]);
}

ms_err ms_opunknown_list(ms_trace *trace, const ms_opgraph *ops,
                         const ms_index *rows)
{
    ms_graph *g = trace->graph;
    ms_index names;
    g->unknown_name =
        ms_arena_take(trace->arena, ops->n_nodes, sizeof *g->unknown_name);
    g->unknown_count =
        ms_arena_take(trace->arena, ops->n_nodes, sizeof *g->unknown_count);
    if (!g->unknown_name || !g->unknown_count)
        return ms_fail_nomem(trace->fault);
    MS_TRY(ms_index_make(&names, ops->n_nodes, trace->scratch, trace->fault));
    for (uint32_t n = 0; n < ops->n_nodes; n++) {
        const ms_opnode *node = &ops->nodes[n];
        if (ms_atentable_find(rows, node->op, node->overload) ||
            ms_opcast_is_note(node->op))
            continue;
        const char *name =
            ms_arena_format(trace->arena, "%s.%s", node->name, node->overload);
        if (!name)
            return ms_fail_nomem(trace->fault);
        uint32_t row = ms_index_add(&names, name, g->n_unknown);
        if (row == g->n_unknown)
            g->unknown_name[g->n_unknown++] = name;
        g->unknown_count[row]++;
    }
    return MS_OK;
}
