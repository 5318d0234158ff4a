/* SPDX-License-Identifier: GPL-3.0-or-later */
/* x.copy_(y), x[...] = y and other ops in place on a part of a tensor. */
#include "graphs/ops/ops.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

static uint32_t zeros_like(ms_trace *trace, uint32_t like)
{
    ms_trace_begin(trace, "aten::zeros_like");
    uint32_t y = ms_view_make(trace, "zeros", like, like);
    ms_trace_end(trace, 0, false);
    return y;
}

/* What was overwritten has no part in the result: its gradient is zeros.  That
 * of the source, if it is a tensor, is the gradient itself. */
static void copy_backward(ms_trace *trace, const ms_node *node,
                          const uint32_t *grads, uint32_t *out)
{
    if (node->needs[0])
        out[0] = zeros_like(trace, grads[0]);
    if (node->n_inputs > 1 && node->needs[1]) {
        ms_trace_ref(trace, grads[0]);
        out[1] = grads[0];
    }
}

const ms_rule ms_assign_copy_rule = {"CopyBackwards", NULL, copy_backward};

/* ---- writes into a part -------------------------------------------------- */

static uint32_t copy_of(ms_trace *trace, const char *op, uint32_t from,
                        uint32_t like)
{
    ms_trace_begin(trace, op);
    ms_trace_read(trace, from);
    uint32_t y = ms_view_make(trace, "grad", like, like);
    ms_trace_end(trace, 0, false);
    return y;
}

/* torch/csrc/autograd/functions/tensor.cpp, CopySlices.  The inputs are the
 * whole tensor as it was, the other inputs of the op and, last, the part (for
 * its shape).  Backward copies the whole gradient, copies the part of it once
 * more, and runs the rule of the op on that; the result is copied into the
 * whole. */
static void slices_backward(ms_trace *trace, const ms_node *node,
                            const uint32_t *grads, uint32_t *out)
{
    uint32_t n = node->n_inputs - 1, part = node->input[n];
    uint32_t whole =
        copy_of(trace, "aten::empty_strided", grads[0], node->input[0]);
    uint32_t grad = copy_of(trace, "aten::clone", whole, part);
    ms_node inner = *node;
    uint32_t before = node->input[0];
    inner.rule = node->inner;
    inner.n_inputs = n;
    inner.input[0] = part;
    if (!trace->err)
        inner.rule->backward(trace, &inner, &grad, out);
    inner.input[0] = before;
    ms_trace_drop(trace, grad);
    ms_trace_drop(trace, out[0]);
    out[0] = whole;
    if (!node->needs[0]) {
        ms_trace_drop(trace, whole);
        out[0] = MS_NONE;
    }
}

static const ms_rule slices_rule = {"CopySlices", "aten::empty_strided",
                                    slices_backward};

static const ms_formula strided = {
    {"AsStridedBackward0", NULL, ms_formula_backward},
    "0: as_strided_backward.i0!"};

/* An alias with the history that the tensor has now: the write gives the tensor
 * itself a new one. */
uint32_t ms_assign_before(ms_trace *trace, uint32_t whole)
{
    uint32_t before = ms_trace_alias(trace, whole);
    if (before == MS_NONE)
        return before;
    ms_tensor *alias = ms_trace_at(trace, before);
    const ms_tensor *was = ms_trace_at(trace, whole);
    alias->node = was->node;
    alias->output = was->output;
    alias->requires_grad = was->requires_grad;
    return before;
}

void ms_assign_part(ms_trace *trace, uint32_t n, uint32_t whole,
                    uint32_t written)
{
    if (n == MS_NONE || trace->err)
        return;
    ms_node *node = &trace->nodes[n];
    node->inner = node->rule;
    node->rule = &slices_rule;
    ms_trace_node(trace, &strided.rule, &whole, 1, &written, 1);
}

uint32_t ms_assign_slice(ms_trace *trace, uint32_t whole, uint32_t slice,
                         uint32_t source)
{
    ms_trace_begin(trace, "aten::copy_");
    ms_trace_read(trace, source);
    if (trace->err)
        return MS_NONE;
    trace->graph->op_write_bytes[trace->graph->n_ops - 1] +=
        ms_trace_bytes(ms_trace_at(trace, slice));
    ms_trace_end(trace, 0, false);
    uint32_t written = ms_trace_alias(trace, slice);
    uint32_t inputs[3] = {ms_assign_before(trace, whole), source, slice};
    uint32_t n = trace->err ? MS_NONE
                            : ms_trace_node(trace, &ms_assign_copy_rule, inputs,
                                            3, &whole, 1);
    ms_assign_part(trace, n, whole, written);
    ms_trace_drop(trace, inputs[0]);
    ms_trace_drop(trace, written);
    ms_trace_ref(trace, whole);
    return whole;
}
