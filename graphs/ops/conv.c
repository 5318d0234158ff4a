/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Convolution and pooling, backward. */
#include "graphs/ops/ops.h"

static void one(ms_trace *trace, const ms_node *node, uint32_t i, uint8_t pass,
                double flops, const uint32_t *grads, uint32_t *out)
{
    uint8_t was = trace->pass;

    if (!node->needs[i])
        return;
    trace->pass = pass;
    ms_trace_begin(trace, "aten::convolution_backward");
    ms_trace_read(trace, grads[0]);
    if (flops > 0)
        ms_trace_read(trace, node->saved[pass == MS_GRAD_INPUT ? 1 : 0]);
    out[i] = ms_trace_make_like(trace, "grad", node->input[i]);
    ms_trace_end(trace, flops, true);
    trace->pass = was;
}

/* Inputs: x, weight, bias.  dx, dbias, dweight; transposed (i[0]): dx,
 * dweight, dbias. */
static void conv_backward(ms_trace *trace, const ms_node *node,
                          const uint32_t *grads, uint32_t *out)
{
    bool transposed = node->i[0];

    one(trace, node, 0, MS_GRAD_INPUT, node->flops, grads, out);
    if (transposed)
        one(trace, node, 1, MS_GRAD_WEIGHT, node->flops, grads, out);
    if (node->n_inputs > 2)
        one(trace, node, 2, MS_GRAD_WEIGHT, 0, grads, out);
    if (!transposed)
        one(trace, node, 1, MS_GRAD_WEIGHT, node->flops, grads, out);
}

const ms_rule ms_conv_rule = {"ConvolutionBackward0",
                              "aten::convolution_backward", conv_backward};

static void pool_backward(ms_trace *trace, const ms_node *node,
                          const uint32_t *grads, uint32_t *out)
{
    ms_trace_begin(trace, node->rule->op);
    ms_trace_read(trace, grads[0]);
    for (uint32_t i = 0; i < node->n_saved; i++)
        ms_trace_read(trace, node->saved[i]);
    out[0] = ms_trace_make_like(trace, "grad", node->input[0]);
    ms_trace_end(trace, 0, false);
}

const ms_rule ms_conv_max_pool_rule = {
    "MaxPool2DWithIndicesBackward0",
    "aten::max_pool2d_with_indices_backward", pool_backward};
const ms_rule ms_conv_avg_pool_rule = {
    "AdaptiveAvgPool2DBackward0", "aten::_adaptive_avg_pool2d_backward",
    pool_backward};
