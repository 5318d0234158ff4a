/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Layer norm and softmax. */
#include "graphs/ops/ops.h"

#include <string.h>

static double count(ms_trace *trace, uint32_t x)
{
    return trace->err ? 0 : (double)ms_trace_elements(ms_trace_at(trace, x));
}

/* ---- layer norm ---------------------------------------------------------- */

/* Inputs: x, weight, bias.  dx, dweight, dbias; on the CPU a scratch of two
 * rows of fp32 per thread. */
static void layer_norm_backward(ms_trace *trace, const ms_node *node,
                                const uint32_t *grads, uint32_t *out)
{
    ms_trace_begin(trace, "aten::native_layer_norm_backward");
    ms_trace_read(trace, grads[0]);
    for (uint32_t i = 0; i < node->n_saved; i++)
        ms_trace_read(trace, node->saved[i]);
    if (node->needs[0])
        out[0] = ms_trace_make_like(trace, "grad", node->input[0]);
    if (node->needs[1])
        out[1] = ms_trace_make_like(trace, "grad", node->input[1]);
    if (node->needs[2])
        out[2] = ms_trace_make_like(trace, "grad", node->input[2]);
    if (trace->cpu && node->needs[1])
        ms_trace_workspace(
            trace, 8 * ms_trace_elements(ms_trace_at(trace, node->input[1])));
    ms_trace_end(trace, 21 * count(trace, grads[0]), false);
}

const ms_rule ms_norm_layer_norm_rule = {"NativeLayerNormBackward0",
                                        "aten::native_layer_norm_backward",
                                        layer_norm_backward};

/* One fp32 value per normalised row. */
static uint32_t row_statistic(ms_trace *trace, uint32_t x, const char *role)
{
    int64_t dims[MS_MAX_DIMS];

    if (trace->err)
        return MS_NONE;
    const ms_tensor *tensor = ms_trace_at(trace, x);
    uint32_t n_dims = tensor->n_dims;
    memcpy(dims, tensor->size, sizeof dims);
    dims[n_dims - 1] = 1;
    return ms_trace_make(trace, role, MS_FLOAT32, n_dims, dims);
}

uint32_t ms_norm_layer(ms_trace *trace, uint32_t x, uint32_t weight,
                       uint32_t bias)
{
    /* Korthikanti et al. 2022 leave the statistics out of the account. */
    bool statistics = trace->training->kernels != MS_KORTHIKANTI;
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
    ms_trace_end(trace, 9 * count(trace, x), false);
    uint32_t n = ms_trace_node(trace, &ms_norm_layer_norm_rule, inputs, 3, &y, 1);
    ms_trace_save(trace, n, x);
    if (weight != MS_NONE)
        ms_trace_save(trace, n, weight);
    if (statistics) {
        ms_trace_save(trace, n, mean);
        ms_trace_save(trace, n, rstd);
    }
    ms_trace_drop(trace, mean);
    ms_trace_drop(trace, rstd);
    return y;
}

/* ---- batch norm ---- */

/* Inputs: x, weight, bias.  A scratch like x, dweight, dbias, dx. */
static void batch_norm_backward(ms_trace *trace, const ms_node *node,
                                const uint32_t *grads, uint32_t *out)
{
    ms_trace_begin(trace, "aten::native_batch_norm_backward");
    ms_trace_read(trace, grads[0]);
    for (uint32_t i = 0; i < node->n_saved; i++)
        ms_trace_read(trace, node->saved[i]);
    if (trace->cpu && !trace->err)
        ms_trace_workspace(
            trace, ms_trace_bytes(ms_trace_at(trace, node->input[0])));
    for (uint32_t i = 1; i < node->n_inputs; i++)
        if (node->needs[i])
            out[i] = ms_trace_make_like(trace, "grad", node->input[i]);
    if (node->needs[0])
        out[0] = ms_trace_make_like(trace, "grad", node->input[0]);
    ms_trace_end(trace, 21 * count(trace, grads[0]), false);
}

const ms_rule ms_norm_batch_norm_rule = {"NativeBatchNormBackward0",
                                         "aten::native_batch_norm_backward",
                                         batch_norm_backward};

/* ---- group norm ---- */

/* Inputs: x, weight, bias.  dx, dweight, dbias. */
static void group_norm_backward(ms_trace *trace, const ms_node *node,
                                const uint32_t *grads, uint32_t *out)
{
    ms_trace_begin(trace, "aten::native_group_norm_backward");
    ms_trace_read(trace, grads[0]);
    for (uint32_t i = 0; i < node->n_saved; i++)
        ms_trace_read(trace, node->saved[i]);
    for (uint32_t i = 0; i < node->n_inputs; i++)
        if (node->needs[i])
            out[i] = ms_trace_make_like(trace, "grad", node->input[i]);
    ms_trace_end(trace, 21 * count(trace, grads[0]), false);
}

const ms_rule ms_norm_group_norm_rule = {"NativeGroupNormBackward0",
                                         "aten::native_group_norm_backward",
                                         group_norm_backward};

/* ---- softmax ------------------------------------------------------------- */

static void softmax_backward(ms_trace *trace, const ms_node *node,
                             const uint32_t *grads, uint32_t *out)
{
    ms_trace_begin(trace, "aten::_softmax_backward_data");
    ms_trace_read(trace, grads[0]);
    ms_trace_read(trace, node->saved[0]);
    out[0] = ms_trace_make_like(trace, "grad", node->input[0]);
    ms_trace_end(trace, 8 * count(trace, grads[0]), false);
}

const ms_rule ms_norm_softmax_rule = {
    "SoftmaxBackward0", "aten::_softmax_backward_data", softmax_backward};

uint32_t ms_norm_softmax(ms_trace *trace, uint32_t x)
{
    ms_trace_begin(trace, "aten::_softmax");
    ms_trace_read(trace, x);
    uint32_t y = ms_trace_make_like(trace, "out", x);
    ms_trace_end(trace, 5 * count(trace, x), false);
    ms_trace_save(trace, ms_trace_node(trace, &ms_norm_softmax_rule, &x, 1, &y, 1), y);
    return y;
}
