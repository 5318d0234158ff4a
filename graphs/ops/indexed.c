/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ops that choose elements: where, and indexing by tensors. */
#include "graphs/ops/ops.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

/* ---- where --------------------------------------------------------------- */

/* where(condition, grad, 0) for self, where(condition, 0, grad) for other; the
 * zero becomes a tensor of one element. */
static uint32_t chosen(ms_trace *trace, const ms_node *node, uint32_t grad)
{
    if (trace->err)
        return MS_NONE;
    ms_trace_begin(trace, "aten::scalar_tensor");
    uint32_t zero =
        ms_trace_make(trace, "zero", ms_trace_at(trace, grad)->dtype, 0,
                      (const int64_t[]){0});
    ms_trace_end(trace, 0, false);
    ms_trace_begin(trace, "aten::where");
    ms_trace_read(trace, grad);
    ms_trace_read(trace, node->saved[0]);
    ms_trace_read(trace, zero);
    uint32_t y = ms_view_make(trace, "grad", grad, grad);
    ms_trace_end(trace, 0, false);
    ms_trace_drop(trace, zero);
    return y;
}

static void where_backward(ms_trace *trace, const ms_node *node,
                           const uint32_t *grads, uint32_t *out)
{
    for (uint32_t i = 0; i < node->n_inputs; i++)
        if (node->needs[i])
            out[i] = chosen(trace, node, grads[0]);
}

const ms_rule ms_indexed_where_rule = {"WhereBackward0", "aten::where",
                                       where_backward};

/* ---- index --------------------------------------------------------------- */

/* Makes a tensor of one int64 per index. */
static uint32_t indices_like(ms_trace *trace, const char *op, uint32_t from,
                             int64_t n)
{
    ms_trace_begin(trace, op);
    ms_trace_read(trace, from);
    uint32_t y = ms_trace_make(trace, "indices", MS_INT64, 1, &n);
    ms_trace_end(trace, 0, false);
    return y;
}

/* index_put_ with accumulate sorts the n indices on CUDA.  From their
 * remainder, times the strides, it makes keys, sorted keys and positions;
 * values that are not contiguous are cloned first.  The sort itself takes 1
 * byte up to 2048 indices; beyond, it is the line through the bytes measured at
 * 4096 and 8192 (graphs/autograd.md 17). */
static void put_sorted(ms_trace *trace, uint32_t whole, uint32_t index,
                       uint32_t values)
{
    if (trace->err)
        return;
    int64_t n = (int64_t)ms_trace_elements(ms_trace_at(trace, index));
    uint32_t rest = indices_like(trace, "aten::remainder", index, n);
    uint32_t linear = indices_like(trace, "aten::mul", rest, n);
    ms_trace_drop(trace, rest);
    ms_trace_begin(trace, "aten::index_put_");
    ms_trace_read(trace, whole);
    ms_trace_read(trace, linear);
    ms_trace_read(trace, values);
    if (trace->err)
        return;
    if (!ms_view_is_contiguous(ms_trace_at(trace, values)))
        ms_trace_workspace(trace, ms_trace_bytes(ms_trace_at(trace, values)));
    for (uint32_t i = 0; i < 3; i++)
        ms_trace_workspace(trace, 8 * (uint64_t)n);
    ms_trace_workspace(trace, n <= 2048 ? 1 : 5631 + 65 * (uint64_t)n / 4);
    ms_trace_end(trace, 0, false);
    ms_trace_drop(trace, linear);
}

/* The gradient is zeros as large as the input, to which the rows are added. */
static void index_backward(ms_trace *trace, const ms_node *node,
                           const uint32_t *grads, uint32_t *out)
{
    uint8_t was = trace->pass;
    bool sorts = !trace->settings->cpu && node->n_saved;
    if (trace->err)
        return;
    const ms_tensor *input = ms_trace_at(trace, node->input[0]);
    if (input->parameter != MS_NONE)
        trace->pass = MS_GRAD_WEIGHT;
    if (sorts)
        ms_trace_begin(trace, "aten::new_zeros");
    else
        ms_trace_begin_backward(trace, node, grads[0]);
    out[0] = ms_trace_make_like(trace, "grad", node->input[0]);
    ms_trace_end(trace, 0, false);
    if (sorts)
        put_sorted(trace, out[0], node->saved[0], grads[0]);
    trace->pass = was;
}

const ms_rule ms_indexed_index_rule = {"IndexBackward0", "aten::index_put_",
                                       index_backward};

/* ---- im2col -------------------------------------------------------------- */

/* col2im begins with a buffer like the columns and then shrinks it. */
static void columns_backward(ms_trace *trace, const ms_node *node,
                             const uint32_t *grads, uint32_t *out)
{
    ms_trace_begin_backward(trace, node, grads[0]);
    out[0] = ms_trace_make_like(trace, "grad", node->input[0]);
    if (trace->err)
        return;
    uint64_t columns = ms_trace_bytes(ms_trace_at(trace, grads[0]));
    uint64_t *bytes =
        &trace->graph->storage_bytes[ms_trace_at(trace, out[0])->storage];
    if (*bytes < columns)
        *bytes = columns;
    ms_trace_end(trace, 0, false);
}

const ms_rule ms_indexed_columns_rule = {"Im2ColBackward0", "aten::col2im",
                                         columns_backward};
