/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The norms of Liger Kernel (ops/rms_norm.py, ops/layer_norm.py).  Each program
 * of the backward sums the gradient of the weight over its rows, one program
 * per multiprocessor, and a sum over the programs follows.  The RMS norm writes
 * dx over dy, the layer norm makes it. */
#include "graphs/ops/ops.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

#include <string.h>

#define RMS_FORWARD_FLOPS 5 /* per element */
#define RMS_BACKWARD_FLOPS 14
#define LAYER_FORWARD_FLOPS 9
#define LAYER_BACKWARD_FLOPS 21

/* Makes a tensor of one value per row. */
static uint32_t per_row(ms_trace *trace, uint32_t x, const char *role,
                        uint8_t dtype)
{
    if (trace->err)
        return MS_NONE;
    const ms_tensor *tensor = ms_trace_at(trace, x);
    int64_t last = tensor->size[tensor->n_dims - 1];
    int64_t rows = (int64_t)ms_trace_elements(tensor) / last;
    return ms_trace_make(trace, role, dtype, 1, &rows);
}

/* Makes partial sums [programs, width] in the open op. */
static uint32_t partial_sums(ms_trace *trace, uint32_t parameter, uint8_t dtype)
{
    if (trace->err)
        return MS_NONE;
    int64_t dims[2] = {trace->settings->device->multiprocessors,
                       ms_trace_at(trace, parameter)->size[0]};
    return ms_trace_make(trace, "partial_sums", dtype, 2, dims);
}

/* partial.sum(dim=0).to(dtype of the parameter); partial is used up. */
static uint32_t sum_up(ms_trace *trace, uint32_t partial, uint32_t parameter)
{
    if (trace->err)
        return MS_NONE;
    ms_tensor like = *ms_trace_at(trace, parameter);
    uint8_t dtype = ms_trace_at(trace, partial)->dtype;
    ms_trace_begin(trace, "aten::sum");
    ms_trace_read(trace, partial);
    uint32_t sum = ms_trace_make(trace, "grad", dtype, 1, like.size);
    ms_scratch_reduce(trace, partial, 1, sizeof(float));
    ms_trace_end(trace, ms_trace_count(trace, partial), false);
    ms_trace_drop(trace, partial);
    if (trace->err || dtype == like.dtype)
        return sum;
    return ms_trace_rebind(trace, sum, ms_cast_to(trace, sum, like.dtype));
}

/* ---- RMS norm ------------------------------------------------------------ */

/* Inputs: x, weight.  A gradient that is not laid out in rows is copied
 * first. */
static void rms_backward(ms_trace *trace, const ms_node *node,
                         const uint32_t *grads, uint32_t *out)
{
    uint32_t partial = MS_NONE;
    uint32_t dy = ms_view_contiguous(trace, grads[0]);
    ms_trace_begin_backward(trace, node, dy);
    if (trace->err)
        return;
    trace->graph->op_write_bytes[trace->graph->n_ops - 1] +=
        ms_trace_bytes(ms_trace_at(trace, dy));
    partial = partial_sums(trace, node->input[1], MS_FLOAT32);
    ms_trace_end(trace, RMS_BACKWARD_FLOPS * ms_trace_count(trace, dy), false);
    if (node->needs[1])
        out[1] = sum_up(trace, partial, node->input[1]);
    else
        ms_trace_drop(trace, partial);
    if (node->needs[0])
        out[0] = dy;
    else
        ms_trace_drop(trace, dy);
}

static const ms_rule rms_rule = {"LigerRMSNormFunctionBackward",
                                 "liger_rms_norm_backward", rms_backward};

uint32_t ms_fusednorm_rms(ms_trace *trace, uint32_t x, uint32_t weight)
{
    uint32_t inputs[2] = {x, weight};
    ms_trace_begin(trace, "liger_rms_norm");
    ms_trace_read(trace, x);
    ms_trace_read(trace, weight);
    uint32_t y = ms_trace_make_like(trace, "out", x);
    uint32_t rstd = per_row(trace, x, "rstd", MS_FLOAT32);
    ms_trace_end(trace, RMS_FORWARD_FLOPS * ms_trace_count(trace, x), false);
    uint32_t n = ms_trace_node(trace, &rms_rule, inputs, 2, &y, 1);
    ms_trace_save(trace, n, x);
    ms_trace_save(trace, n, weight);
    ms_trace_save(trace, n, rstd);
    ms_trace_drop(trace, rstd);
    return y;
}

/* ---- layer norm ---------------------------------------------------------- */

/* Inputs: x, weight, bias. */
static void layer_backward(ms_trace *trace, const ms_node *node,
                           const uint32_t *grads, uint32_t *out)
{
    uint32_t partial[3] = {MS_NONE, MS_NONE, MS_NONE};
    uint32_t dy = ms_view_contiguous(trace, grads[0]);
    ms_trace_begin_backward(trace, node, dy);
    out[0] = ms_trace_make_like(trace, "grad", node->input[0]);
    for (uint32_t i = 1; i < 3 && !trace->err; i++)
        partial[i] = partial_sums(trace, node->input[i],
                                  ms_trace_at(trace, node->input[i])->dtype);
    ms_trace_end(trace, LAYER_BACKWARD_FLOPS * ms_trace_count(trace, dy),
                 false);
    ms_trace_drop(trace, dy);
    for (uint32_t i = 1; i < 3; i++)
        out[i] = sum_up(trace, partial[i], node->input[i]);
    for (uint32_t i = 0; i < 3 && !trace->err; i++)
        if (!node->needs[i]) {
            ms_trace_drop(trace, out[i]);
            out[i] = MS_NONE;
        }
}

static const ms_rule layer_rule = {"LigerLayerNormFunctionBackward",
                                   "liger_layer_norm_backward", layer_backward};

uint32_t ms_fusednorm_layer(ms_trace *trace, uint32_t x, uint32_t weight,
                            uint32_t bias)
{
    uint32_t inputs[3] = {x, weight, bias}, own[3];
    if (trace->err)
        return MS_NONE;
    uint8_t dtype = ms_trace_at(trace, x)->dtype;
    ms_trace_begin(trace, "liger_layer_norm");
    for (uint32_t i = 0; i < 3; i++)
        ms_trace_read(trace, inputs[i]);
    own[0] = ms_trace_make_like(trace, "out", x);
    own[1] = per_row(trace, x, "mean", dtype);
    own[2] = per_row(trace, x, "rstd", dtype);
    ms_trace_end(trace, LAYER_FORWARD_FLOPS * ms_trace_count(trace, x), false);
    uint32_t n = ms_trace_node(trace, &layer_rule, inputs, 3, own, 1);
    for (uint32_t i = 0; i < 3; i++)
        ms_trace_save(trace, n, inputs[i]);
    for (uint32_t i = 1; i < 3; i++) {
        ms_trace_save(trace, n, own[i]);
        ms_trace_drop(trace, own[i]);
    }
    return own[0];
}
