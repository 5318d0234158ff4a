/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Means over dimensions. */
#include "graphs/ops/ops.h"
#include "graphs/trace/trace.h"

#include <string.h>

uint32_t ms_reduce_mean(ms_trace *trace, uint32_t x, uint32_t n)
{
    int64_t dims[MS_MAX_DIMS];
    if (trace->err)
        return MS_NONE;
    const ms_tensor *tensor = ms_trace_at(trace, x);
    uint32_t n_dims = tensor->n_dims;
    uint8_t dtype = tensor->dtype;
    double elements = (double)ms_trace_elements(tensor);
    memcpy(dims, tensor->size, sizeof dims);
    for (uint32_t d = n_dims - n; d < n_dims; d++)
        dims[d] = 1;
    ms_trace_begin(trace, "aten::mean");
    ms_trace_read(trace, x);
    uint32_t y = ms_trace_make(trace, "mean", dtype, n_dims, dims);
    ms_scratch_reduce(trace, x, ((1u << n) - 1) << (n_dims - n), sizeof(float));
    ms_trace_end(trace, elements, false);
    uint32_t node = ms_trace_node(trace, &ms_loss_mean_rule, &x, 1, &y, 1);
    /* Before torch 2 backward asked the saved tensor for its sizes. */
    if (trace->settings->framework < MS_TORCH_2)
        ms_trace_save(trace, node, x);
    return y;
}
