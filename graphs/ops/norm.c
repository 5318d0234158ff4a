/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Normalisation and softmax. */
#include "graphs/ops/autocast.h"
#include "graphs/ops/ops.h"
#include "graphs/trace/opend.h"
#include "graphs/trace/savelist.h"
#include "graphs/trace/trace.h"

#include <string.h>

/* The gradients of all inputs that need one, in order. */
static void make_grads(ms_trace *trace, const ms_node *node, uint32_t *out)
{
    for (uint32_t i = 0; i < node->n_inputs; i++)
        if (node->needs[i])
            out[i] = ms_trace_make_like(trace, "grad", node->input[i]);
}

/* ---- layer norm ---------------------------------------------------------- */

/* Inputs: x, weight, bias.  dx, dweight, dbias; on the CPU a scratch of two
 * rows of fp32 per thread. */
static void layer_norm_backward(ms_trace *trace, const ms_node *node,
                                const uint32_t *grads, uint32_t *out)
{
    ms_trace_begin_backward(trace, node, grads[0]);
    make_grads(trace, node, out);
    if (trace->settings->cpu && node->n_inputs > 1 && node->needs[1])
        ms_trace_workspace(
            trace, 8 * ms_trace_elements(ms_trace_at(trace, node->input[1])));
    ms_opend_rows(trace, 21 * ms_trace_count(trace, grads[0]), grads[0],
                  MS_WORK_ROWS_CENTRED);
}

const ms_rule ms_norm_layer_norm_rule = {"NativeLayerNormBackward0",
                                         "aten::native_layer_norm_backward",
                                         layer_norm_backward};

/* One value per normalised row: fp32, but on the CPU as x, where the weights
 * are (ATen/native/layer_norm.cpp, param_scalar_type). */
static uint32_t row_statistic(ms_trace *trace, uint32_t x, const char *role)
{
    int64_t dims[MS_MAX_DIMS];
    if (trace->err)
        return MS_NONE;
    const ms_tensor *tensor = ms_trace_at(trace, x);
    uint32_t n_dims = tensor->n_dims;
    memcpy(dims, tensor->size, sizeof dims);
    dims[n_dims - 1] = 1;
    uint8_t dtype = trace->settings->cpu ? tensor->dtype : MS_FLOAT32;
    return ms_trace_make(trace, role, dtype, n_dims, dims);
}

static uint32_t layer_norm(ms_trace *trace, uint32_t x, uint32_t weight,
                           uint32_t bias)
{
    bool statistics = !trace->kernels.keeps_no_statistics;
    uint32_t inputs[3] = {x, weight, bias};
    uint32_t mean = MS_NONE, rstd = MS_NONE;
    ms_trace_begin(trace, "aten::native_layer_norm");
    for (uint32_t i = 0; i < 3; i++)
        ms_trace_read(trace, inputs[i]);
    uint32_t y = ms_trace_make_like(trace, "out", x);
    if (statistics) {
        mean = row_statistic(trace, x, "mean");
        rstd = row_statistic(trace, x, "rstd");
    }
    ms_opend_rows(trace, 9 * ms_trace_count(trace, x), x, MS_WORK_ROWS_CENTRED);
    uint32_t n =
        ms_trace_node(trace, &ms_norm_layer_norm_rule, inputs, 3, &y, 1);
    ms_trace_save(trace, n, x);
    if (weight != MS_NONE)
        ms_trace_save(trace, n, weight);
    ms_savelist_add(trace, n, bias);
    if (statistics) {
        ms_trace_save(trace, n, mean);
        ms_trace_save(trace, n, rstd);
    }
    ms_trace_drop(trace, mean);
    ms_trace_drop(trace, rstd);
    return y;
}

uint32_t ms_norm_layer(ms_trace *trace, uint32_t x, uint32_t weight,
                       uint32_t bias)
{
    uint32_t in = ms_autocast_input(trace, "native_layer_norm", x);
    uint32_t y = layer_norm(trace, in, weight, bias);
    ms_trace_drop(trace, in);
    return y;
}

/* ---- RMS norm ------------------------------------------------------------ */

/* Inputs: x, weight.  dx, dweight. */
static void rms_norm_backward(ms_trace *trace, const ms_node *node,
                              const uint32_t *grads, uint32_t *out)
{
    ms_trace_begin_backward(trace, node, grads[0]);
    make_grads(trace, node, out);
    ms_opend_rows(trace, 14 * ms_trace_count(trace, grads[0]), grads[0],
                  MS_WORK_ROWS);
}

static const ms_rule rms_norm_rule = {"FusedRmsNormBackward0",
                                      "aten::_fused_rms_norm_backward",
                                      rms_norm_backward};

uint32_t ms_norm_rms(ms_trace *trace, uint32_t x, uint32_t weight)
{
    bool statistics = !trace->kernels.keeps_no_statistics;
    uint32_t inputs[2] = {x, weight};
    uint32_t rstd = MS_NONE;
    ms_trace_begin(trace, "aten::_fused_rms_norm");
    ms_trace_read(trace, x);
    ms_trace_read(trace, weight);
    uint32_t y = ms_trace_make_like(trace, "out", x);
    if (statistics)
        rstd = row_statistic(trace, x, "rstd");
    ms_opend_rows(trace, 5 * ms_trace_count(trace, x), x, MS_WORK_ROWS);
    uint32_t n = ms_trace_node(trace, &rms_norm_rule, inputs, 2, &y, 1);
    ms_trace_save(trace, n, x);
    if (weight != MS_NONE)
        ms_trace_save(trace, n, weight);
    if (statistics)
        ms_trace_save(trace, n, rstd);
    ms_trace_drop(trace, rstd);
    return y;
}

/* ---- batch norm ---------------------------------------------------------- */

static bool same_strides(const ms_tensor *a, const ms_tensor *b)
{
    for (uint32_t d = 0; d < a->n_dims; d++)
        if (a->size[d] != 1 && a->stride[d] != b->stride[d])
            return false;
    return true;
}

/* Inputs: x, weight, bias.  The CPU takes a scratch like x and makes dweight,
 * dbias, dx; where the gradient has another layout than x it needs no scratch
 * and makes dx first.  cuDNN makes dx, dweight, dbias, also for frozen weights.
 */
static void batch_norm_backward(ms_trace *trace, const ms_node *node,
                                const uint32_t *grads, uint32_t *out)
{
    uint32_t x = node->input[0];
    bool first =
        !trace->settings->cpu ||
        !same_strides(ms_trace_at(trace, grads[0]), ms_trace_at(trace, x));
    ms_trace_begin_backward(trace, node, grads[0]);
    if (!first)
        ms_trace_workspace(trace, ms_trace_bytes(ms_trace_at(trace, x)));
    if (first && node->needs[0])
        out[0] = ms_view_make(trace, "grad", x, x);
    for (uint32_t i = 1; i < node->n_inputs; i++)
        if (node->needs[i] || !trace->settings->cpu)
            out[i] = ms_trace_make_like(trace, "grad", node->input[i]);
    if (!first && node->needs[0])
        out[0] = ms_view_make(trace, "grad", x, x);
    ms_trace_end(trace, 21 * ms_trace_count(trace, grads[0]), false);
}

const ms_rule ms_norm_batch_norm_rule = {"NativeBatchNormBackward0",
                                         "aten::native_batch_norm_backward",
                                         batch_norm_backward};

/* Saves x, the weight and `statistics`, of which the last two (mean and
 * inverse deviation) are this op's own. */
static void save_statistics(ms_trace *trace, uint32_t n, uint32_t x,
                            uint32_t weight, const uint32_t *statistics,
                            uint32_t n_statistics)
{
    ms_trace_save(trace, n, x);
    if (weight != MS_NONE)
        ms_trace_save(trace, n, weight);
    for (uint32_t i = 0; i < n_statistics; i++)
        ms_trace_save(trace, n, statistics[i]);
    ms_trace_drop(trace, statistics[n_statistics - 2]);
    ms_trace_drop(trace, statistics[n_statistics - 1]);
}

uint32_t ms_norm_batch(ms_trace *trace, uint32_t x, uint32_t weight,
                       uint32_t bias, const uint32_t *running)
{
    uint32_t inputs[3] = {x, weight, bias}, statistics[4];
    uint32_t n_inputs = weight == MS_NONE ? 1 : 3, n_running = 0;
    if (trace->err)
        return MS_NONE;
    int64_t channels = ms_trace_at(trace, x)->size[1];
    ms_trace_begin(trace, "aten::native_batch_norm");
    for (uint32_t i = 0; i < n_inputs; i++)
        ms_trace_read(trace, inputs[i]);
    for (; running && n_running < 2; n_running++) {
        ms_trace_read(trace, running[n_running]);
        statistics[n_running] = running[n_running];
    }
    bool late = trace->settings->cpu; /* allocates y after the statistics */
    uint32_t y = late ? MS_NONE : ms_trace_make_like(trace, "out", x);
    uint32_t *own = statistics + n_running;
    own[0] = ms_trace_make(trace, "mean", MS_FLOAT32, 1, &channels);
    own[1] = ms_trace_make(trace, "invstd", MS_FLOAT32, 1, &channels);
    y = late ? ms_trace_make_like(trace, "out", x) : y;
    ms_trace_end(trace, 9 * ms_trace_count(trace, x), false);
    uint32_t n =
        ms_trace_node(trace, &ms_norm_batch_norm_rule, inputs, n_inputs, &y, 1);
    save_statistics(trace, n, x, weight, statistics, n_running + 2);
    return y;
}

/* ---- group norm ---------------------------------------------------------- */

/* Inputs: x, weight, bias.  dx, dweight, dbias. */
static void group_norm_backward(ms_trace *trace, const ms_node *node,
                                const uint32_t *grads, uint32_t *out)
{
    ms_trace_begin_backward(trace, node, grads[0]);
    make_grads(trace, node, out);
    ms_trace_end(trace, 21 * ms_trace_count(trace, grads[0]), false);
}

const ms_rule ms_norm_group_norm_rule = {"NativeGroupNormBackward0",
                                         "aten::native_group_norm_backward",
                                         group_norm_backward};

static uint32_t group_norm(ms_trace *trace, uint32_t x, uint32_t weight,
                           uint32_t bias, int64_t groups)
{
    uint32_t inputs[3] = {x, weight, bias}, statistics[2];
    uint32_t n_inputs = weight == MS_NONE ? 1 : 3;
    if (trace->err)
        return MS_NONE;
    int64_t dims[2] = {ms_trace_at(trace, x)->size[0], groups};
    ms_trace_begin(trace, "aten::native_group_norm");
    for (uint32_t i = 0; i < n_inputs; i++)
        ms_trace_read(trace, inputs[i]);
    uint32_t y = ms_trace_make_like(trace, "out", x);
    statistics[0] = ms_trace_make(trace, "mean", MS_FLOAT32, 2, dims);
    statistics[1] = ms_trace_make(trace, "rstd", MS_FLOAT32, 2, dims);
    ms_trace_end(trace, 9 * ms_trace_count(trace, x), false);
    uint32_t n =
        ms_trace_node(trace, &ms_norm_group_norm_rule, inputs, n_inputs, &y, 1);
    save_statistics(trace, n, x, weight, statistics, 2);
    return y;
}

uint32_t ms_norm_group(ms_trace *trace, uint32_t x, uint32_t weight,
                       uint32_t bias, int64_t groups)
{
    uint32_t in = ms_autocast_input(trace, "native_group_norm", x);
    uint32_t y = group_norm(trace, in, weight, bias, groups);
    ms_trace_drop(trace, in);
    return y;
}

/* ---- softmax ------------------------------------------------------------- */

static void softmax_backward(ms_trace *trace, const ms_node *node,
                             const uint32_t *grads, uint32_t *out)
{
    ms_trace_begin(trace, "aten::_softmax_backward_data");
    ms_trace_read(trace, grads[0]);
    ms_trace_read(trace, node->saved[0]);
    out[0] = ms_trace_make_like(trace, "grad", node->input[0]);
    ms_opend_rows(trace, 8 * ms_trace_count(trace, grads[0]), grads[0],
                  MS_WORK_ROWS);
}

const ms_rule ms_norm_softmax_rule = {
    "SoftmaxBackward0", "aten::_softmax_backward_data", softmax_backward};

uint32_t ms_norm_softmax(ms_trace *trace, uint32_t x)
{
    uint32_t in = ms_autocast_input(trace, "_softmax", x);
    if (in == MS_NONE)
        return in;
    const ms_tensor *tensor = ms_trace_at(trace, in);
    uint8_t dtype = ms_autocast_dtype(trace, "_softmax", tensor->dtype);
    ms_trace_begin(trace, "aten::_softmax");
    ms_trace_read(trace, in);
    uint32_t y =
        ms_trace_make(trace, "out", dtype, tensor->n_dims, tensor->size);
    ms_opend_rows(trace, 5 * ms_trace_count(trace, in), in, MS_WORK_ROWS);
    ms_trace_save(
        trace, ms_trace_node(trace, &ms_norm_softmax_rule, &in, 1, &y, 1), y);
    ms_trace_drop(trace, in);
    return y;
}
