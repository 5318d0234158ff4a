/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/parallel/partlookup.h"
#include "graphs/ops/ops.h"
#include "graphs/parallel/shards.h"
#include "graphs/parallel/tensorops.h"
#include "graphs/trace/trace.h"

/* grad.index_put(mask, 0) */
static void zero_backward(ms_trace *trace, const ms_node *node,
                          const uint32_t *grads, uint32_t *out)
{
    ms_trace_begin(trace, "aten::index_put");
    ms_trace_read(trace, grads[0]);
    ms_trace_read(trace, node->saved[0]);
    out[0] = trace->err ? MS_NONE : ms_trace_make_like(trace, "grad", grads[0]);
    ms_trace_end(trace, 0, false);
}

static const ms_rule zero_rule = {"IndexPutBackward0", NULL, zero_backward};

/* rows[mask] = 0: rows itself, as the result of a node. */
static uint32_t zero(ms_trace *trace, uint32_t rows, uint32_t mask)
{
    ms_trace_begin(trace, "aten::index_put_");
    ms_trace_read(trace, rows);
    ms_trace_read(trace, mask);
    ms_trace_end(trace, 0, false);
    if (trace->err)
        return MS_NONE;
    uint32_t y = ms_trace_alias(trace, rows);
    uint32_t n = ms_trace_node(trace, &zero_rule, &rows, 1, &y, 1);
    ms_trace_save(trace, n, mask);
    return y;
}

uint32_t ms_partlookup_embedding(ms_trace *trace, uint32_t weight, uint32_t ids)
{
    if (trace->err)
        return MS_NONE;
    ms_tensor like = *ms_trace_at(trace, ids);
    ms_trace_begin(trace, "vocab_range");
    ms_trace_read(trace, ids);
    uint32_t mask =
        ms_trace_make(trace, "mask", MS_BYTE, like.n_dims, like.size);
    uint32_t own = ms_trace_make_like(trace, "own_ids", ids);
    ms_trace_end(trace, 0, false);
    uint32_t y = ms_lookup_embedding(trace, weight, own);
    y = ms_trace_rebind(trace, y, zero(trace, y, mask));
    ms_trace_drop(trace, mask);
    ms_trace_drop(trace, own);
    if (trace->err)
        return MS_NONE;
    bool parts = trace->shards->layout[trace->layer] == MS_LAYOUT_SEQUENCE;
    uint32_t sum =
        parts ? ms_tensorops_scatter(trace, y) : ms_tensorops_reduce(trace, y);
    return ms_trace_rebind(trace, y, sum);
}
