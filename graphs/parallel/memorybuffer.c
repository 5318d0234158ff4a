/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/parallel/memorybuffer.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

#include <string.h>

static const char role[] = "mpu";

static ms_shared_buffer *find(const ms_trace *trace, uint8_t dtype)
{
    ms_shared_buffer *b = trace->shared;
    while (b && (strcmp(b->role, role) != 0 ||
                 ms_trace_at(trace, b->tensor)->dtype != dtype))
        b = b->next;
    return b;
}

static ms_shared_buffer *make(ms_trace *trace, uint8_t dtype)
{
    int64_t none[2] = {1, 0};
    uint32_t t = ms_trace_buffer(trace, role, dtype, 2, none);
    ms_shared_buffer *item = ms_arena_take(trace->scratch, 1, sizeof *item);
    if (!item && !trace->err)
        trace->err = ms_fail_nomem(trace->fault);
    if (trace->err)
        return NULL;
    uint32_t s = ms_trace_at(trace, t)->storage;
    trace->graph->storage_category[s] = MS_WORKSPACE;
    trace->graph->storage_layer[s] = MS_NONE;
    *item = (ms_shared_buffer){role, t, trace->shared};
    trace->shared = item;
    return item;
}

uint32_t ms_memorybuffer_take(ms_trace *trace, uint8_t dtype, uint32_t n_dims,
                              const int64_t *dims)
{
    if (trace->err)
        return MS_NONE;
    ms_shared_buffer *b = find(trace, dtype);
    if (!b)
        b = make(trace, dtype);
    uint32_t y = b ? ms_trace_alias(trace, b->tensor) : MS_NONE;
    if (trace->err)
        return MS_NONE;
    ms_tensor *seen = ms_trace_at(trace, y);
    int64_t stride = 1;
    seen->n_dims = (uint8_t)n_dims;
    for (uint32_t d = n_dims; d-- > 0;) {
        seen->size[d] = dims[d];
        seen->stride[d] = stride;
        stride *= dims[d];
    }
    uint64_t *bytes = &trace->graph->storage_bytes[seen->storage];
    if (ms_trace_bytes(seen) > *bytes)
        *bytes = ms_trace_bytes(seen);
    return y;
}
