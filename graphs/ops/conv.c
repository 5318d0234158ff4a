/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Convolution, pooling and upsampling of [batch, channels, ...]. */
#include "graphs/machines/cudnn.h"
#include "graphs/ops/autocast.h"
#include "graphs/ops/ops.h"
#include "graphs/trace/opend.h"
#include "graphs/trace/trace.h"
#include "graphs/training.h"

#include <math.h>

/* The dimension that is k-th from the innermost in channels_last: the channels,
 * then the spatial dimensions from the last to the first, then the batch. */
static uint32_t channels_last_order(uint32_t n_dims, uint32_t k)
{
    return k == 0 ? 1u : k == n_dims - 1 ? 0u : n_dims - k;
}

bool ms_conv_is_channels_last(const ms_tensor *tensor)
{
    uint32_t n = tensor->n_dims;
    int64_t least = 0;
    if (n != 4 && n != 5)
        return false;
    if (tensor->stride[1] == 0)
        return false;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t d = channels_last_order(n, k);
        if (tensor->size[d] == 0 || tensor->stride[d] < least ||
            (d == 0 && least == tensor->stride[1]))
            return false;
        least = tensor->stride[d];
        if (tensor->size[d] > 1)
            least *= tensor->size[d];
    }
    return true;
}

static void lay_channels_last(ms_tensor *tensor)
{
    int64_t stride = 1;
    for (uint32_t k = 0; k < tensor->n_dims; k++) {
        uint32_t d = channels_last_order(tensor->n_dims, k);
        tensor->stride[d] = stride;
        stride *= tensor->size[d];
    }
}

/* One input or weight of channels_last makes all of the convolution run so; the
 * transposed convolution of the CPU knows contiguous tensors only. */
static bool runs_channels_last(const ms_trace *trace, const ms_node *node)
{
    if (trace->settings->cpu && node->i[0])
        return false;
    return ms_conv_is_channels_last(ms_trace_at(trace, node->input[0])) ||
           ms_conv_is_channels_last(ms_trace_at(trace, node->input[1]));
}

static void search(ms_trace *trace, const ms_node *node, uint32_t grad)
{
    if (!trace->err)
        ms_cudnn_search(trace, node->input[0], node->input[1],
                        ms_trace_at(trace, grad)->size);
}

/* Tensor cores have products over the channels, which cuDNN makes lie innermost
 * and back where they do not (cudnn's nchwToNhwc kernels).  A channel by itself
 * is no product. */
static ms_op_work work_of(const ms_trace *trace, uint32_t x, uint32_t weight)
{
    const ms_tensor *w = ms_trace_at(trace, weight);
    const ms_training *training = trace->settings->training;
    if (w->size[1] == 1 && w->size[0] > 1)
        return MS_WORK_DEPTHWISE;
    return training->memory_format == MS_CHANNELS_LAST ||
                   ms_conv_is_channels_last(ms_trace_at(trace, x)) ||
                   ms_conv_is_channels_last(w)
               ? MS_WORK_CONVOLUTION
               : MS_WORK_CONVERTED;
}

/* 3 x 3 at each position. */
static bool is_three(const ms_tensor *in, const ms_tensor *w,
                     const ms_tensor *out)
{
    return w->n_dims == 4 && w->size[2] == 3 && w->size[3] == 3 &&
           w->size[1] == in->size[1] && in->size[2] == out->size[2];
}

/* The positions of a tensor [batch, channels, ...]. */
static double positions_of(const ms_tensor *tensor)
{
    return (double)ms_trace_elements(tensor) / (double)tensor->size[1];
}

/* The side of its images, as if they were squares. */
static double side_of(const ms_tensor *tensor)
{
    return sqrt(positions_of(tensor) / fmax(1, (double)tensor->size[0]));
}

/* The products of a convolution of x that gives y, or of one of its gradients:
 * positions by the channels that they get, of the weight the channels of y by
 * what each reads. */
static void end_convolution(ms_trace *trace, uint32_t x, uint32_t weight,
                            uint32_t y, uint8_t pass, double flops)
{
    if (trace->err || flops <= 0) {
        ms_trace_end(trace, flops, true);
        return;
    }
    const ms_tensor *in = ms_trace_at(trace, x), *out = ms_trace_at(trace, y);
    double filter = (double)ms_trace_elements(ms_trace_at(trace, weight));
    double inputs = (double)in->size[1], outputs = (double)out->size[1];
    double kernel = filter / outputs; /* of a transposed one of its inputs */
    double groups =
        fmax(1, inputs / fmax(1, (double)ms_trace_at(trace, weight)->size[1]));
    ms_convolved c = {.groups = groups,
                      .m = positions_of(out),
                      .n = outputs / groups,
                      .taps = kernel * groups / inputs,
                      .stride = side_of(in) / fmax(1, side_of(out)),
                      .side = side_of(out)};
    if (pass == MS_GRAD_INPUT) {
        c.m = positions_of(in);
        c.n = inputs / groups;
    } else if (pass == MS_GRAD_WEIGHT) {
        c.m = outputs / groups;
        c.n = kernel;
    }
    ms_op_work work = work_of(trace, x, weight);
    if (work == MS_WORK_CONVERTED &&
        is_three(in, ms_trace_at(trace, weight), out))
        work = MS_WORK_CONVERTED_THREE;
    ms_opend_convolution(trace, flops, work, &c);
}

static void one(ms_trace *trace, const ms_node *node, uint32_t i, uint8_t pass,
                double flops, const uint32_t *grads, uint32_t *out)
{
    uint8_t was = trace->pass;
    if (!node->needs[i])
        return;
    trace->pass = pass;
    ms_trace_begin(trace, "aten::convolution_backward");
    if (flops > 0)
        search(trace, node, grads[0]);
    ms_trace_read(trace, grads[0]);
    if (flops > 0)
        ms_trace_read(trace, node->saved[pass == MS_GRAD_INPUT ? 1 : 0]);
    out[i] = ms_trace_make_like(trace, "grad", node->input[i]);
    if (i < 2 && !trace->err && runs_channels_last(trace, node))
        lay_channels_last(ms_trace_at(trace, out[i]));
    else if (i == 1)
        ms_cudnn_workspace(trace, node->input[0], node->input[1], grads[0]);
    end_convolution(trace, node->input[0], node->input[1], grads[0], pass,
                    flops);
    trace->pass = was;
}

/* Inputs: x, weight, bias.  The gradients are made in the order dx, dbias,
 * dweight; those of a transposed convolution (i[0]) as dx, dweight, dbias.  The
 * order decides which gradients exist while the next one is computed. */
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

/* A tensor like x with other sizes, made by the open op. */
static uint32_t resized(ms_trace *trace, uint32_t x, const char *role,
                        uint8_t dtype, const int64_t *dims)
{
    return trace->err ? MS_NONE
                      : ms_trace_make(trace, role, dtype,
                                      ms_trace_at(trace, x)->n_dims, dims);
}

static uint8_t dtype_of(ms_trace *trace, uint32_t x)
{
    return trace->err ? MS_FLOAT32 : ms_trace_at(trace, x)->dtype;
}

static uint32_t convolution(ms_trace *trace, const uint32_t *inputs,
                            const ms_conv *conv)
{
    uint32_t n_inputs = inputs[2] == MS_NONE ? 2 : 3, x = inputs[0];
    ms_trace_begin(trace, "aten::convolution");
    ms_cudnn_search(trace, x, inputs[1], conv->dims);
    for (uint32_t i = 0; i < n_inputs; i++)
        ms_trace_read(trace, inputs[i]);
    uint32_t y = resized(trace, x, "out", dtype_of(trace, x), conv->dims);
    end_convolution(trace, x, inputs[1], y, MS_FORWARD, conv->flops);
    uint32_t n = ms_trace_node(trace, &ms_conv_rule, inputs, n_inputs, &y, 1);
    if (n == MS_NONE)
        return y;
    trace->nodes[n].i[0] = conv->transposed;
    trace->nodes[n].flops = conv->flops;
    ms_trace_save(trace, n, x);
    ms_trace_save(trace, n, inputs[1]);
    return y;
}

uint32_t ms_conv_convolution(ms_trace *trace, uint32_t x, uint32_t weight,
                             uint32_t bias, const ms_conv *conv)
{
    const uint32_t inputs[3] = {x, weight, bias};
    uint32_t in[3];
    ms_autocast_enter(trace, "convolution", 3, inputs, in);
    uint32_t y = convolution(trace, in, conv);
    ms_autocast_exit(trace, 3, in);
    return y;
}

/* ---- pooling ------------------------------------------------------------- */

static void pool_backward(ms_trace *trace, const ms_node *node,
                          const uint32_t *grads, uint32_t *out)
{
    ms_trace_begin_backward(trace, node, grads[0]);
    out[0] = ms_trace_make_like(trace, "grad", node->input[0]);
    ms_trace_end(trace, 0, false);
}

const ms_rule ms_conv_max_pool_rule = {"MaxPool2DWithIndicesBackward0",
                                       "aten::max_pool2d_with_indices_backward",
                                       pool_backward};
const ms_rule ms_conv_avg_pool_rule = {"AdaptiveAvgPool2DBackward0",
                                       "aten::_adaptive_avg_pool2d_backward",
                                       pool_backward};
