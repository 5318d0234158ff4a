/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/parallel/partproduct.h"
#include "graphs/ops/ops.h"
#include "graphs/parallel/shards.h"
#include "graphs/parallel/tensorops.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

/* Inputs of both nodes. */
enum { X, WEIGHT, BIAS };
enum { IN_BUFFER }; /* what a node remembers */

static bool by_sequence(const ms_trace *trace)
{
    return trace->shards->by_sequence;
}

/* The whole of x: a new tensor, or in the buffer. */
static uint32_t gather(ms_trace *trace, uint32_t x, bool in_buffer)
{
    return in_buffer ? ms_tensorops_whole_in_buffer(trace, x)
                     : ms_tensorops_whole_of(trace, x);
}

/* Rows with the dimensions of what they were made from, but for the last. */
static uint32_t shaped(ms_trace *trace, uint32_t rows, uint32_t from)
{
    if (trace->err)
        return MS_NONE;
    ms_tensor like = *ms_trace_at(trace, from);
    like.size[like.n_dims - 1] = ms_trace_at(trace, rows)->size[1];
    return ms_trace_rebind(
        trace, rows, ms_view_reshape(trace, rows, like.n_dims, like.size));
}

/* x times the weight: [batch, sequence, out]. */
static uint32_t multiply(ms_trace *trace, uint32_t x, uint32_t weight)
{
    uint32_t rows = ms_view_rows(trace, x);
    uint32_t flat = ms_matmul_rows(trace, rows, weight);
    ms_trace_drop(trace, rows);
    return shaped(trace, flat, x);
}

/* The gradients of both operands: grad and x as whole as the product was. */
static uint32_t input_grad(ms_trace *trace, const ms_node *node, uint32_t grad)
{
    uint32_t rows = ms_view_rows(trace, grad);
    uint32_t flat =
        ms_matmul_grad_rows(trace, rows, node->input[WEIGHT], node->flops);
    ms_trace_drop(trace, rows);
    return shaped(trace, flat, grad);
}

static uint32_t weight_grad(ms_trace *trace, const ms_node *node, uint32_t grad,
                            uint32_t x)
{
    uint32_t rows = ms_view_rows(trace, grad), of = ms_view_rows(trace, x);
    uint32_t y = ms_matmul_grad_weight(trace, rows, of, node->input[WEIGHT],
                                       node->flops);
    ms_trace_drop(trace, rows);
    ms_trace_drop(trace, of);
    return y;
}

static void bias_grad(ms_trace *trace, const ms_node *node, uint32_t grad,
                      uint32_t *out)
{
    if (node->n_inputs <= BIAS || !node->needs[BIAS])
        return;
    ms_trace_ref(trace, grad);
    out[BIAS] = grad;
}

/* ---- by columns ---------------------------------------------------------- */

static void columns_backward(ms_trace *trace, const ms_node *node,
                             const uint32_t *grads, uint32_t *out)
{
    bool parts = by_sequence(trace), learns = node->needs[WEIGHT];
    uint32_t x = node->input[X], whole = x, dx = MS_NONE;
    if (parts && learns)
        whole = gather(trace, x, node->i[IN_BUFFER]);
    if (node->needs[X])
        dx = input_grad(trace, node, grads[0]);
    if (node->needs[X] && parts)
        out[X] = ms_tensorops_part_of_sum(trace, dx);
    else if (node->needs[X])
        ms_tensorops_sum(trace, dx);
    if (learns)
        out[WEIGHT] = weight_grad(trace, node, grads[0], whole);
    if (parts && node->needs[X])
        ms_trace_drop(trace, dx);
    else
        out[X] = dx;
    if (whole != x)
        ms_trace_drop(trace, whole);
    bias_grad(trace, node, grads[0], out);
}

static void rows_backward(ms_trace *trace, const ms_node *node,
                          const uint32_t *grads, uint32_t *out)
{
    bool parts = by_sequence(trace);
    uint32_t whole = parts ? ms_tensorops_whole_of(trace, grads[0]) : grads[0];
    if (node->needs[X])
        out[X] = input_grad(trace, node, whole);
    if (node->needs[WEIGHT])
        out[WEIGHT] = weight_grad(trace, node, whole, node->input[X]);
    if (parts)
        ms_trace_drop(trace, whole);
    bias_grad(trace, node, grads[0], out);
}

static const ms_rule columns_rule = {"ColumnParallelLinearBackward", NULL,
                                     columns_backward};
static const ms_rule rows_rule = {"RowParallelLinearBackward", NULL,
                                  rows_backward};

static double flops_of(const ms_trace *trace, uint32_t rows, uint32_t weight)
{
    if (trace->err)
        return 0;
    const ms_tensor *x = ms_trace_at(trace, rows);
    double in = (double)x->size[x->n_dims - 1];
    return 2 * (double)ms_trace_elements(x) / in *
           (double)ms_trace_elements(ms_trace_at(trace, weight));
}

/* Each operand is saved where the other's gradient is asked for. */
static void add_node(ms_trace *trace, const ms_rule *rule, const uint32_t *in,
                     uint32_t y, double flops, bool in_buffer)
{
    uint32_t n =
        ms_trace_node(trace, rule, in, in[BIAS] == MS_NONE ? 2 : 3, &y, 1);
    if (n == MS_NONE)
        return;
    trace->nodes[n].flops = flops;
    trace->nodes[n].i[IN_BUFFER] = in_buffer;
    if (ms_trace_needs(trace, in[WEIGHT]))
        ms_trace_save(trace, n, in[X]);
    if (ms_trace_needs(trace, in[X]))
        ms_trace_save(trace, n, in[WEIGHT]);
}

uint32_t ms_partproduct_columns(ms_trace *trace, uint32_t x, uint32_t weight,
                                uint32_t bias, bool in_buffer)
{
    uint32_t in[3] = {x, weight, bias};
    bool parts = !trace->err && by_sequence(trace);
    uint32_t whole = parts ? gather(trace, x, in_buffer) : x;
    double flops = flops_of(trace, whole, weight);
    uint32_t y = multiply(trace, whole, weight);
    if (parts)
        ms_trace_drop(trace, whole);
    add_node(trace, &columns_rule, in, y, flops, in_buffer);
    return y;
}

uint32_t ms_partproduct_rows(ms_trace *trace, uint32_t x, uint32_t weight,
                             uint32_t bias)
{
    uint32_t in[3] = {x, weight, bias};
    double flops = flops_of(trace, x, weight);
    uint32_t y = multiply(trace, x, weight);
    if (!trace->err && by_sequence(trace))
        y = ms_trace_rebind(trace, y, ms_tensorops_part_of_sum(trace, y));
    else
        ms_tensorops_sum(trace, y);
    add_node(trace, &rows_rule, in, y, flops, false);
    return y;
}
