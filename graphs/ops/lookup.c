/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Embeddings: rows of a table by index. */
#include "graphs/ops/ops.h"
#include "graphs/trace/savelist.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

#include <string.h>

/* embedding_dense_backward makes a gradient as large as the whole table: zeros,
 * to which the rows are added. */
static void embedding_backward(ms_trace *trace, const ms_node *node,
                               const uint32_t *grads, uint32_t *out)
{
    uint8_t was = trace->pass;
    trace->pass = MS_GRAD_WEIGHT;
    ms_trace_begin(trace, "aten::embedding_dense_backward");
    ms_trace_read(trace, grads[0]);
    ms_trace_read(trace, node->saved[0]);
    out[0] = ms_trace_make_like(trace, "grad", node->input[0]);
    ms_trace_end(trace, 0, false);
    trace->pass = was;
}

const ms_rule ms_lookup_embedding_rule = {
    "EmbeddingBackward0", "aten::embedding_dense_backward", embedding_backward};

uint32_t ms_lookup_embedding(ms_trace *trace, uint32_t weight, uint32_t indices)
{
    int64_t dims[MS_MAX_DIMS];
    if (trace->err)
        return MS_NONE;
    const ms_tensor *ids = ms_trace_at(trace, indices);
    const ms_tensor *table = ms_trace_at(trace, weight);
    uint32_t n_dims = ids->n_dims;
    memcpy(dims, ids->size, sizeof dims);
    dims[n_dims] = table->size[1];
    uint8_t dtype = table->dtype;
    ms_trace_begin(trace, "aten::embedding");
    ms_trace_read(trace, indices);
    uint32_t y = ms_trace_make(trace, "out", dtype, n_dims + 1, dims);
    ms_trace_read(trace, weight);
    if (!trace->err) {
        /* Only the rows looked up are read. */
        ms_graph *g = trace->graph;
        uint32_t op = g->n_ops - 1;
        g->op_read_bytes[op] = g->op_write_bytes[op];
    }
    ms_trace_end(trace, 0, false);
    uint32_t n =
        ms_trace_node(trace, &ms_lookup_embedding_rule, &weight, 1, &y, 1);
    /* torch 1.13 saves the table for its size, later versions the number. */
    if (trace->settings->framework == MS_TORCH_1_13)
        ms_savelist_add(trace, n, weight);
    ms_trace_save(trace, n, indices);
    return y;
}

uint32_t ms_lookup_arange(ms_trace *trace, int64_t n)
{
    ms_trace_begin(trace, "aten::arange");
    uint32_t y =
        ms_trace_make(trace, "indices", MS_INT64, 2, (const int64_t[]){1, n});
    ms_trace_end(trace, 0, false);
    return y;
}
