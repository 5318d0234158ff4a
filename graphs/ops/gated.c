/* SPDX-License-Identifier: GPL-3.0-or-later */
/* SwiGLU and GeGLU as one kernel (Liger, Transformer Engine, Megatron).  The
 * node saves gate and up alone and backward computes the activation again
 * (graphs/autograd.md 20).  Liger's backward (ops/swiglu.py, ops/geglu.py)
 * writes the gradients over gate and up. */
#include "graphs/ops/ops.h"
#include "graphs/trace/savedends.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

#define FORWARD_FLOPS 6 /* per element: activation 5, product 1 */
#define BACKWARD_FLOPS 14

static void gated_backward(ms_trace *trace, const ms_node *node,
                           const uint32_t *grads, uint32_t *out)
{
    ms_trace_begin_backward(trace, node, grads[0]);
    for (uint32_t i = 0; i < 2; i++)
        if (node->needs[i])
            out[i] = ms_trace_make_like(trace, "grad", node->input[i]);
    ms_trace_end(trace, BACKWARD_FLOPS * ms_trace_count(trace, grads[0]),
                 false);
}

static void in_place_backward(ms_trace *trace, const ms_node *node,
                              const uint32_t *grads, uint32_t *out)
{
    ms_trace_begin_backward(trace, node, grads[0]);
    for (uint32_t i = 0; i < 2 && !trace->err; i++)
        trace->graph->op_write_bytes[trace->graph->n_ops - 1] +=
            ms_trace_bytes(ms_trace_at(trace, node->saved[i]));
    ms_trace_end(trace, BACKWARD_FLOPS * ms_trace_count(trace, grads[0]),
                 false);
    ms_savedends_give(trace, node, out);
}

static const ms_rule gated_rule = {"GatedBackward", "gated_backward",
                                   gated_backward};
/* One tensor has both, and one gradient. */
static void halves_backward(ms_trace *trace, const ms_node *node,
                            const uint32_t *grads, uint32_t *out)
{
    ms_trace_begin_backward(trace, node, grads[0]);
    out[0] = ms_trace_make_like(trace, "grad", node->input[0]);
    ms_trace_end(trace, BACKWARD_FLOPS * ms_trace_count(trace, grads[0]),
                 false);
}

static const ms_rule halves_rule = {"GatedBackward", "gated_backward",
                                    halves_backward};
static const ms_rule in_place_rule = {
    "LigerGatedBackward", "liger_gated_backward", in_place_backward};

uint32_t ms_gated_halves(ms_trace *trace, const char *op, uint32_t x)
{
    if (trace->err)
        return MS_NONE;
    ms_tensor half = *ms_trace_at(trace, x);
    half.size[half.n_dims - 1] /= 2;
    ms_trace_begin(trace, op);
    ms_trace_read(trace, x);
    uint32_t y =
        ms_trace_make(trace, "out", half.dtype, half.n_dims, half.size);
    ms_trace_end(trace, FORWARD_FLOPS * ms_trace_count(trace, y), false);
    uint32_t n = ms_trace_node(trace, &halves_rule, &x, 1, &y, 1);
    ms_trace_save(trace, n, x);
    return y;
}

uint32_t ms_gated_product(ms_trace *trace, const char *op, bool in_place,
                          uint32_t gate, uint32_t up)
{
    const ms_rule *rule = in_place ? &in_place_rule : &gated_rule;
    uint32_t inputs[2] = {gate, up};
    ms_trace_begin(trace, op);
    ms_trace_read(trace, gate);
    ms_trace_read(trace, up);
    uint32_t y = ms_trace_make_like(trace, "out", gate);
    ms_trace_end(trace, FORWARD_FLOPS * ms_trace_count(trace, gate), false);
    uint32_t n = ms_trace_node(trace, rule, inputs, 2, &y, 1);
    ms_trace_save(trace, n, gate);
    ms_trace_save(trace, n, up);
    if (in_place)
        ms_savedends_hold(trace, n);
    return y;
}
