/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rotary position embedding (Su et al. 2021). */
#include "graphs/ops/ops.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

/* ---- op by op, as LLaMA's code ------------------------------------------- */

/* cat((-x2, x1), dim=-1) of the halves x1, x2 of the last dimension. */
static uint32_t rotate_half(ms_trace *trace, uint32_t x)
{
    if (trace->err)
        return MS_NONE;
    const ms_tensor *tensor = ms_trace_at(trace, x);
    uint32_t last = tensor->n_dims - 1u;
    int64_t dim = tensor->size[last];
    uint32_t first = ms_view_slice(trace, x, last, dim / 2);
    uint32_t second = ms_view_slice(trace, x, last, dim - dim / 2);
    uint32_t turned = ms_pointwise_negative(trace, second);
    uint32_t halves[2] = {turned, first};
    uint32_t y = ms_view_cat(trace, halves, 2, last);
    ms_trace_drop(trace, turned);
    ms_trace_drop(trace, first);
    ms_trace_drop(trace, second);
    return y;
}

uint32_t ms_rotary_eager(ms_trace *trace, uint32_t x, uint32_t cos,
                         uint32_t sin)
{
    uint32_t kept = ms_pointwise_mul(trace, x, cos);
    uint32_t half = rotate_half(trace, x);
    uint32_t turned = ms_pointwise_mul(trace, half, sin);
    ms_trace_drop(trace, half);
    uint32_t y = ms_pointwise_add(trace, kept, turned);
    ms_trace_drop(trace, kept);
    ms_trace_drop(trace, turned);
    return y;
}

/* a cos + b sin, or minus. */
static uint32_t turned(ms_trace *trace, const uint32_t halves[2], uint32_t cos,
                       uint32_t sin, bool minus)
{
    uint32_t a = ms_pointwise_mul(trace, halves[0], cos);
    uint32_t b = ms_pointwise_mul(trace, halves[1], sin);
    uint32_t y =
        minus ? ms_pointwise_sub(trace, a, b) : ms_pointwise_add(trace, a, b);
    ms_trace_drop(trace, a);
    ms_trace_drop(trace, b);
    return y;
}

uint32_t ms_rotary_halves(ms_trace *trace, uint32_t x, uint32_t cos,
                          uint32_t sin)
{
    uint32_t halves[2], swapped[2], parts[2];
    if (trace->err)
        return MS_NONE;
    const int64_t half = ms_trace_at(trace, x)->size[3] / 2;
    const int64_t sizes[2] = {half, half};
    ms_split_sizes(trace, x, 3, 2, sizes, halves);
    swapped[0] = halves[1];
    swapped[1] = halves[0];
    parts[0] = turned(trace, halves, cos, sin, true);
    parts[1] = turned(trace, swapped, cos, sin, false);
    uint32_t y = ms_view_cat(trace, parts, 2, 3);
    ms_split_drop(trace, 2, parts);
    ms_split_drop(trace, 2, halves);
    return y;
}

/* ---- one kernel, in place ------------------------------------------------ */

/* Reads x and the tables, writes x. */
static void rotate(ms_trace *trace, const char *op, uint32_t x, uint32_t cos,
                   uint32_t sin)
{
    ms_trace_begin(trace, op);
    ms_trace_read(trace, x);
    ms_trace_read(trace, cos);
    ms_trace_read(trace, sin);
    if (trace->err)
        return;
    const ms_tensor *tensor = ms_trace_at(trace, x);
    trace->graph->op_write_bytes[trace->graph->n_ops - 1] +=
        ms_trace_bytes(tensor);
    ms_trace_end(trace, 3 * (double)ms_trace_elements(tensor), false);
}

static void rotary_backward(ms_trace *trace, const ms_node *node,
                            const uint32_t *grads, uint32_t *out)
{
    rotate(trace, node->rule->op, grads[0], node->saved[0], node->saved[1]);
    ms_trace_ref(trace, grads[0]);
    out[0] = grads[0];
}

static const ms_rule rotary_rule = {"RotaryBackward", "rotary_backward",
                                    rotary_backward};

uint32_t ms_rotary_fused(ms_trace *trace, uint32_t x, uint32_t cos,
                         uint32_t sin)
{
    rotate(trace, "rotary", x, cos, sin);
    uint32_t y = ms_trace_alias(trace, x);
    uint32_t n = ms_trace_node(trace, &rotary_rule, &x, 1, &y, 1);
    ms_trace_save(trace, n, cos);
    ms_trace_save(trace, n, sin);
    return y;
}
