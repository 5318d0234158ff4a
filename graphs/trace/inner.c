/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/trace/inner.h"
#include "graphs/trace/columns.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

void ms_inner_make(ms_trace *trace, ms_inner_graph *inner, uint32_t first,
                   uint32_t n)
{
    *inner = (ms_inner_graph){.first_parameter = first, .n = n};
    inner->weight = ms_columns_take(trace, n + 1, sizeof *inner->weight);
    for (uint32_t i = 0; i < n && inner->weight != NULL; i++)
        inner->weight[i].sum = MS_NONE;
}

/* Its parameters wait for the gradients of this piece alone. */
void ms_inner_enter(ms_trace *trace, ms_inner_graph *inner)
{
    if (trace->err)
        return;
    assert(trace->inner == NULL);
    trace->inner = inner;
    trace->keeps_no_graph = false;
    inner->first_node = trace->n_nodes;
    inner->node_outside = trace->node_now;
    for (uint32_t i = 0; i < inner->n; i++) {
        ms_parameter *it = &trace->parameters[inner->first_parameter + i];
        inner->weight[i].uses = it->uses;
        inner->weight[i].grad = it->grad;
        it->uses = 0;
        it->grad = MS_NONE;
    }
}

static void leave(ms_trace *trace)
{
    ms_inner_graph *inner = trace->inner;
    trace->inner = NULL;
    trace->keeps_no_graph = true;
    trace->node_now = inner->node_outside;
    trace->n_nodes = inner->first_node;
    for (uint32_t i = 0; i < inner->n; i++) {
        ms_parameter *it = &trace->parameters[inner->first_parameter + i];
        it->uses = inner->weight[i].uses;
        it->grad = inner->weight[i].grad;
    }
}

uint32_t ms_inner_zeros(ms_trace *trace, uint32_t x)
{
    ms_trace_begin(trace, "aten::zeros_like");
    uint32_t y = ms_trace_make_like(trace, "grad", x);
    ms_trace_end(trace, 0, false);
    return y;
}

/* sum += grad */
static void add(ms_trace *trace, uint32_t sum, uint32_t grad)
{
    ms_trace_begin(trace, "aten::add_");
    ms_trace_read(trace, sum);
    ms_trace_read(trace, grad);
    if (!trace->err)
        trace->graph->op_write_bytes[trace->graph->n_ops - 1] +=
            ms_trace_bytes(ms_trace_at(trace, grad));
    ms_trace_end(trace, ms_trace_count(trace, grad), false);
}

static void leaf_backward(ms_trace *trace, const ms_node *node,
                          const uint32_t *grads, uint32_t *out)
{
    (void)out;
    add(trace, (uint32_t)node->i[0], grads[0]);
}

static const ms_rule leaf_rule = {"AccumulateGrad", "aten::add_",
                                  leaf_backward};

uint32_t ms_inner_leaf(ms_trace *trace, uint32_t x, uint32_t sum)
{
    uint32_t leaf = ms_trace_alias(trace, x);
    if (leaf == MS_NONE || sum == MS_NONE)
        return leaf;
    uint32_t n = ms_trace_node_always(trace, &leaf_rule, NULL, 0, &leaf, 1);
    if (n != MS_NONE)
        trace->nodes[n].i[0] = sum;
    return leaf;
}

void ms_inner_backward(ms_trace *trace, uint32_t y, uint32_t grad)
{
    if (trace->err)
        return;
    const ms_tensor *from = ms_trace_at(trace, y);
    if (from->node != MS_NONE)
        trace->nodes[from->node].grad[from->output] = grad;
    else
        ms_trace_drop(trace, grad);
    trace->run_inside(trace, trace->inner->first_node);
    leave(trace);
}

uint32_t ms_inner_gradient(ms_inner_graph *inner, uint32_t i)
{
    uint32_t sum = inner->weight[i].sum;
    inner->weight[i].sum = MS_NONE;
    return sum;
}

void ms_inner_accumulate(ms_trace *trace, ms_parameter *parameter)
{
    const ms_inner_graph *inner = trace->inner;
    uint32_t row = (uint32_t)(parameter - trace->parameters);
    assert(row - inner->first_parameter < inner->n);
    ms_inner_weight *it = &inner->weight[row - inner->first_parameter];
    uint32_t grad = parameter->grad;
    parameter->grad = MS_NONE;
    if (it->sum == MS_NONE) {
        it->sum = grad;
        return;
    }
    add(trace, it->sum, grad);
    ms_trace_drop(trace, grad);
}

void ms_inner_release(ms_trace *trace, const ms_node *node)
{
    for (uint32_t i = 0; i < node->n_saved && !trace->err; i++)
        ms_trace_drop(trace, node->saved[i]);
}
