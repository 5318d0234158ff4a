/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/layers/attention/projections.h"
#include "graphs/ops/ops.h"
#include "graphs/trace/trace.h"

uint32_t ms_projections_heads(ms_trace *trace, uint32_t x, int64_t heads)
{
    if (trace->err)
        return MS_NONE;
    const ms_tensor *flat = ms_trace_at(trace, x);
    int64_t dims[4] = {flat->size[0], flat->size[1], heads,
                       flat->size[2] / heads};
    uint32_t view = ms_view_reshape(trace, x, 4, dims);
    uint32_t y = ms_view_transpose(trace, view, 1, 2);
    ms_trace_drop(trace, view);
    return y;
}

uint32_t ms_projections_join(ms_trace *trace, uint32_t y, int64_t width)
{
    if (trace->err)
        return MS_NONE;
    uint32_t turned = ms_view_transpose(trace, y, 1, 2);
    uint32_t whole = ms_view_contiguous(trace, turned);
    ms_trace_drop(trace, y);
    ms_trace_drop(trace, turned);
    if (trace->err)
        return MS_NONE;
    int64_t dims[3] = {ms_trace_at(trace, whole)->size[0],
                       ms_trace_at(trace, whole)->size[1], width};
    uint32_t flat = ms_view_reshape(trace, whole, 3, dims);
    ms_trace_drop(trace, whole);
    return flat;
}
