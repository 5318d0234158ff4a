/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A tensor in another number format. */
#include "graphs/ops/ops.h"
#include "graphs/trace/trace.h"

static uint32_t cast(ms_trace *trace, uint32_t x, uint8_t dtype,
                     const char *role)
{
    if (trace->err)
        return MS_NONE;
    const ms_tensor *tensor = ms_trace_at(trace, x);
    ms_trace_begin(trace, "aten::_to_copy");
    ms_trace_read(trace, x);
    uint32_t y =
        ms_trace_make(trace, role, dtype, tensor->n_dims, tensor->size);
    if (y != MS_NONE)
        ms_view_lay_out(trace, y, x);
    ms_trace_end(trace, 0, false);
    return y;
}

static void cast_backward(ms_trace *trace, const ms_node *node,
                          const uint32_t *grads, uint32_t *out)
{
    if (trace->err)
        return;
    uint8_t dtype = ms_trace_at(trace, node->input[0])->dtype;
    if (ms_trace_at(trace, grads[0])->dtype != dtype) {
        out[0] = cast(trace, grads[0], dtype, "grad");
        return;
    }
    ms_trace_ref(trace, grads[0]); /* only the layout was another */
    out[0] = grads[0];
}

const ms_rule ms_cast_rule = {"ToCopyBackward0", "aten::_to_copy",
                              cast_backward};

uint32_t ms_cast_to(ms_trace *trace, uint32_t x, uint8_t dtype)
{
    if (trace->err)
        return MS_NONE;
    if (ms_trace_at(trace, x)->dtype == dtype) {
        ms_trace_ref(trace, x);
        return x;
    }
    uint32_t y = cast(trace, x, dtype, "out");
    ms_trace_node(trace, &ms_cast_rule, &x, 1, &y, 1);
    return y;
}
