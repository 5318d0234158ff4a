/* SPDX-License-Identifier: GPL-3.0-or-later */
/* x.copy_(y) and x[...] = y: autograd of writes in place. */
#include "graphs/ops/ops.h"

static uint32_t zeros_like(ms_trace *trace, uint32_t like)
{
    ms_trace_begin(trace, "aten::zeros_like");
    uint32_t y = ms_view_make(trace, "zeros", like, like);
    ms_trace_end(trace, 0, false);
    return y;
}

/* What was overwritten gets zeros, the source the gradient itself. */
static void copy_backward(ms_trace *trace, const ms_node *node,
                          const uint32_t *grads, uint32_t *out)
{
    if (node->needs[0])
        out[0] = zeros_like(trace, grads[0]);
    if (node->needs[1]) {
        ms_trace_ref(trace, grads[0]);
        out[1] = grads[0];
    }
}

const ms_rule ms_assign_copy_rule = {"CopyBackwards", NULL, copy_backward};

static uint32_t copy_of(ms_trace *trace, const char *op, uint32_t from,
                        uint32_t like, uint32_t layout)
{
    ms_trace_begin(trace, op);
    ms_trace_read(trace, from);
    uint32_t y = ms_view_make(trace, "grad", like, layout);
    ms_trace_end(trace, 0, false);
    return y;
}

/* torch/csrc/autograd/functions/tensor.cpp, CopySlices.  Inputs: the whole as
 * it was, the source, the slice (for its shape).  The whole gradient is
 * copied, the slice of it once more; in the first, the slice becomes zeros. */
static void slices_backward(ms_trace *trace, const ms_node *node,
                            const uint32_t *grads, uint32_t *out)
{
    uint32_t whole = copy_of(trace, "aten::empty_strided", grads[0],
                             node->input[0], node->input[0]);
    uint32_t slice =
        copy_of(trace, "aten::clone", whole, node->input[2], node->input[1]);

    if (node->needs[0])
        ms_trace_drop(trace, zeros_like(trace, slice));
    if (node->needs[0])
        out[0] = whole;
    else
        ms_trace_drop(trace, whole);
    out[1] = slice;
}

static const ms_rule slices_rule = {"CopySlices", "aten::empty_strided",
                                    slices_backward};

/* The whole goes on as the result of a node that knows what it was. */
static void rebase(ms_trace *trace, uint32_t whole, uint32_t slice,
                   uint32_t source)
{
    uint32_t before = ms_trace_alias(trace, whole);

    if (before == MS_NONE)
        return;
    ms_tensor *alias = ms_trace_at(trace, before);
    const ms_tensor *was = ms_trace_at(trace, whole);
    alias->node = was->node;
    alias->output = was->output;
    alias->requires_grad = was->requires_grad;
    uint32_t inputs[3] = {before, source, slice};
    ms_trace_node(trace, &slices_rule, inputs, 3, &whole, 1);
    ms_trace_drop(trace, before);
}

void ms_assign_slice(ms_trace *trace, uint32_t whole, uint32_t slice,
                     uint32_t source, uint32_t written)
{
    if (trace->err || !ms_trace_needs(trace, source))
        return;
    rebase(trace, whole, slice, source);
    ms_trace_node(trace, &ms_view_slice_rule, &whole, 1, &written, 1);
}
