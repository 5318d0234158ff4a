/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/parallel/partproduct.h"
#include "graphs/ops/ops.h"
#include "graphs/parallel/shards.h"
#include "graphs/parallel/tensorops.h"
#include "graphs/parallel/userbuffers.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

/* Inputs of both nodes. */
enum { X, WEIGHT, BIAS };
enum { IN_BUFFER }; /* what a node remembers */

static bool by_sequence(const ms_trace *trace)
{
    return trace->shards->by_sequence;
}

/* The whole of x: a new tensor, or in a buffer. */
static uint32_t gather(ms_trace *trace, uint32_t x, bool in_buffer)
{
    uint32_t whole = in_buffer ? ms_tensorops_whole_in_buffer(trace, x)
                               : ms_tensorops_whole_of(trace, x);
    if (ms_userbuffers_used(trace, in_buffer))
        ms_userbuffers_hold(trace, whole);
    return whole;
}

/* Is what was gathered saved, and not gathered again? */
static bool keeps_whole(const ms_trace *trace)
{
    return !trace->err && trace->shards->keeps_whole;
}

static uint32_t ranks_of(const ms_trace *trace)
{
    return trace->shards->ranks.ranks;
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

/* The product that has just ended begins with this rank's rows, `part`, while
 * the others' come; the last ones follow. */
static void go_round(ms_trace *trace, uint32_t part, uint32_t rows,
                     uint32_t weight, uint32_t y, double flops)
{
    uint32_t ranks = ranks_of(trace);
    ms_userbuffers_first(trace, part, ranks - 1, ranks);
    ms_userbuffers_rest(trace, rows, weight, y, MS_NONE, 1, ranks, flops);
}

/* x times the weight: [batch, sequence, out].  part: this rank's of x, where
 * the others' come meanwhile, or MS_NONE. */
static uint32_t multiply(ms_trace *trace, uint32_t x, uint32_t weight,
                         uint32_t part, double flops)
{
    uint32_t rows = ms_view_rows(trace, x);
    uint32_t flat = ms_matmul_rows(trace, rows, weight);
    if (part != MS_NONE)
        go_round(trace, part, rows, weight, flat, flops);
    ms_trace_drop(trace, rows);
    return shaped(trace, flat, x);
}

/* The gradients of both operands: grad and x as whole as the product was; part
 * as above, of grad. */
static uint32_t input_grad(ms_trace *trace, const ms_node *node, uint32_t grad,
                           uint32_t part)
{
    uint32_t weight = node->input[WEIGHT];
    uint32_t rows = ms_view_rows(trace, grad);
    uint32_t flat = ms_matmul_grad_rows(trace, rows, weight, node->flops);
    if (part != MS_NONE) {
        uint8_t was = trace->pass;
        trace->pass = MS_GRAD_INPUT;
        go_round(trace, part, rows, weight, flat, node->flops);
        trace->pass = was;
    }
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
    bool again = parts && learns && !keeps_whole(trace);
    if (again)
        whole = gather(trace, x, node->i[IN_BUFFER]);
    else if (parts && learns)
        whole = node->saved[0];
    if (node->needs[X])
        dx = input_grad(trace, node, grads[0], MS_NONE);
    if (node->needs[X] && ms_userbuffers_used(trace, node->i[IN_BUFFER]))
        ms_userbuffers_hold(trace, dx);
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
    if (again)
        ms_trace_drop(trace, whole);
    bias_grad(trace, node, grads[0], out);
}

static void rows_backward(ms_trace *trace, const ms_node *node,
                          const uint32_t *grads, uint32_t *out)
{
    bool parts = by_sequence(trace);
    bool rings = ms_userbuffers_used(trace, false);
    uint32_t whole = parts ? gather(trace, grads[0], false) : grads[0];
    if (node->needs[X])
        out[X] = input_grad(trace, node, whole, rings ? grads[0] : MS_NONE);
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

/* Each operand is saved where the other's gradient is asked for: x as said. */
static void add_node(ms_trace *trace, const ms_rule *rule, const uint32_t *in,
                     uint32_t x, uint32_t y, double flops, bool in_buffer)
{
    uint32_t n =
        ms_trace_node(trace, rule, in, in[BIAS] == MS_NONE ? 2 : 3, &y, 1);
    if (n == MS_NONE)
        return;
    trace->nodes[n].flops = flops;
    trace->nodes[n].i[IN_BUFFER] = in_buffer;
    if (ms_trace_needs(trace, in[WEIGHT]))
        ms_trace_save(trace, n, x);
    if (ms_trace_needs(trace, in[X]))
        ms_trace_save(trace, n, in[WEIGHT]);
}

uint32_t ms_partproduct_columns(ms_trace *trace, uint32_t x, uint32_t weight,
                                uint32_t bias, bool in_buffer)
{
    uint32_t in[3] = {x, weight, bias};
    bool parts = !trace->err && by_sequence(trace);
    bool keeps = parts && keeps_whole(trace);
    in_buffer &= !keeps;
    uint32_t whole = parts ? gather(trace, x, in_buffer) : x;
    double flops = flops_of(trace, whole, weight);
    bool rings = ms_userbuffers_used(trace, in_buffer);
    uint32_t y = multiply(trace, whole, weight, rings ? x : MS_NONE, flops);
    add_node(trace, &columns_rule, in, keeps ? whole : x, y, flops, in_buffer);
    if (parts)
        ms_trace_drop(trace, whole);
    return y;
}

/* The product, or the first piece of its rows into a buffer. */
static uint32_t multiply_first(ms_trace *trace, uint32_t x, uint32_t weight,
                               bool pieces)
{
    uint32_t rows = ms_view_rows(trace, x);
    uint32_t flat = ms_matmul_rows(trace, rows, weight);
    if (pieces) {
        ms_userbuffers_first(trace, MS_NONE, 1, MS_USERBUFFERS_PIECES);
        ms_userbuffers_hold(trace, flat);
    }
    ms_trace_drop(trace, rows);
    return shaped(trace, flat, x);
}

/* y, of which the first piece has been multiplied last, scattered in pieces. */
static uint32_t pipelined(ms_trace *trace, uint32_t x, uint32_t weight,
                          uint32_t y, double flops)
{
    uint32_t pieces = MS_USERBUFFERS_PIECES;
    uint32_t part = ms_tensorops_first_of_sum(trace, y, pieces - 1, pieces);
    uint32_t rows = ms_view_rows(trace, x);
    uint32_t rest = ms_userbuffers_rest(trace, rows, weight, MS_NONE, y,
                                        pieces - 1, pieces, flops);
    ms_trace_drop(trace, rows);
    ms_tensorops_rest_of_sum(trace, rest, part, 1, pieces);
    ms_trace_drop(trace, rest);
    return part;
}

uint32_t ms_partproduct_rows(ms_trace *trace, uint32_t x, uint32_t weight,
                             uint32_t bias)
{
    uint32_t in[3] = {x, weight, bias};
    double flops = flops_of(trace, x, weight);
    bool pieces = ms_userbuffers_used(trace, false);
    uint32_t y = multiply_first(trace, x, weight, pieces);
    if (pieces)
        y = ms_trace_rebind(trace, y, pipelined(trace, x, weight, y, flops));
    else if (!trace->err && by_sequence(trace))
        y = ms_trace_rebind(trace, y, ms_tensorops_part_of_sum(trace, y));
    else
        ms_tensorops_sum(trace, y);
    add_node(trace, &rows_rule, in, x, y, flops, false);
    return y;
}
