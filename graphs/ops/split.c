/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One tensor as several views of it (split, unbind), and several tensors as one
 * (stack). */
#include "graphs/ops/ops.h"
#include "graphs/trace/trace.h"

#include <string.h>

/* ---- split --------------------------------------------------------------- */

void ms_split_sizes(ms_trace *trace, uint32_t x, uint32_t dim, uint32_t n,
                    const int64_t *sizes, uint32_t *pieces)
{
    for (uint32_t i = 0; i < n; i++) {
        pieces[i] = ms_trace_alias(trace, x);
        if (pieces[i] == MS_NONE)
            return;
        ms_trace_at(trace, pieces[i])->size[dim] = sizes[i];
    }
    ms_trace_node(trace, &ms_view_split_rule, &x, 1, pieces, n);
}

void ms_split_drop(ms_trace *trace, uint32_t n, const uint32_t *pieces)
{
    for (uint32_t i = 0; i < n && !trace->err; i++)
        ms_trace_drop(trace, pieces[i]);
}

/* ---- unbind and stack along the first dimension -------------------------- */

/* x without its first dimension. */
static uint32_t row_of(ms_trace *trace, uint32_t x)
{
    uint32_t y = ms_trace_alias(trace, x);
    if (y != MS_NONE)
        ms_view_drop_dim(ms_trace_at(trace, y), 0);
    return y;
}

void ms_split_unbind(ms_trace *trace, uint32_t x, uint32_t *rows)
{
    if (trace->err)
        return;
    uint32_t n = (uint32_t)ms_trace_at(trace, x)->size[0];
    for (uint32_t i = 0; i < n; i++) {
        rows[i] = row_of(trace, x);
        if (rows[i] == MS_NONE)
            return;
    }
    ms_trace_node(trace, &ms_view_unbind_rule, &x, 1, rows, n);
}

uint32_t ms_split_stack(ms_trace *trace, uint32_t n, const uint32_t *rows)
{
    if (trace->err)
        return MS_NONE;
    ms_tensor row = *ms_trace_at(trace, rows[0]);
    int64_t dims[MS_MAX_DIMS] = {n};
    memcpy(dims + 1, row.size, sizeof *dims * row.n_dims);
    ms_trace_begin(trace, "aten::stack");
    for (uint32_t i = 0; i < n; i++)
        ms_trace_read(trace, rows[i]);
    uint32_t y = ms_trace_make(trace, "out", row.dtype, row.n_dims + 1u, dims);
    ms_trace_end(trace, 0, false);
    ms_trace_node(trace, &ms_view_stack_rule, rows, n, &y, 1);
    return y;
}
