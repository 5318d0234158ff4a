/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/layers/layers.h"

/* y.transpose(1, 2).contiguous().view(batch, sequence, width) */
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
