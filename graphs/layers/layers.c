/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The checks and shapes that the forwards of all layer types share. */
#include "graphs/layers/layers.h"
#include "graphs/trace/trace.h"

#include <stdio.h>

ms_err ms_layers_need_float(ms_trace *trace, const ms_layer *layer, uint32_t x)
{
    if (trace->err)
        return trace->err;
    const ms_tensor *tensor = ms_trace_at(trace, x);
    if (tensor->dtype != MS_INT64 && tensor->n_dims > 0)
        return MS_OK;
    return ms_trace_fail(trace, layer, "put an embedding layer in between",
                         "layer \"%s\" reads token ids, but its type works on "
                         "numbers",
                         layer->name);
}

ms_err ms_layers_need_unsaved(ms_trace *trace, const ms_layer *layer,
                              uint32_t x)
{
    if (trace->err)
        return trace->err;
    uint32_t s = ms_trace_at(trace, x)->storage;
    if (trace->counts[s].saves == 0)
        return MS_OK;
    return ms_trace_fail(trace, layer, "set \"inplace\" to false",
                         "\"%s\" overwrites the output of \"%s\", which is "
                         "kept for backward",
                         layer->name,
                         ms_layers_source(trace->settings, layer, 0));
}

const char *ms_layers_source(const ms_step_settings *settings,
                             const ms_layer *layer, uint32_t i)
{
    uint32_t from = settings->model->edges[layer->in_at + i];
    return from == MS_NONE ? "input" : settings->model->layers[from].name;
}

const char *ms_layers_shape(const ms_tensor *tensor, char text[MS_LAYERS_SHAPE])
{
    size_t n = 0;
    text[n++] = '[';
    for (uint32_t d = 1; d < tensor->n_dims; d++)
        n += (size_t)snprintf(text + n, MS_LAYERS_SHAPE - n, "%s%lld",
                              d > 1 ? ", " : "", (long long)tensor->size[d]);
    text[n++] = ']';
    text[n] = '\0';
    return text;
}

ms_err ms_layers_need_dim(ms_trace *trace, const ms_layer *layer, uint32_t x,
                          int64_t dim)
{
    MS_TRY(ms_layers_need_float(trace, layer, x));
    return ms_layers_have_dim(trace, layer, x, dim);
}

ms_err ms_layers_have_dim(ms_trace *trace, const ms_layer *layer, uint32_t x,
                          int64_t dim)
{
    char shape[MS_LAYERS_SHAPE];
    if (trace->err)
        return trace->err;
    const ms_tensor *tensor = ms_trace_at(trace, x);
    if (dim + 1 < tensor->n_dims)
        return MS_OK;
    return ms_trace_fail(trace, layer, "dimensions count from 0",
                         "\"%s\" works on dimension %lld, but \"%s\" gives %s",
                         layer->name, (long long)dim,
                         ms_layers_source(trace->settings, layer, 0),
                         ms_layers_shape(tensor, shape));
}

int64_t ms_layers_last_dim(ms_trace *trace, uint32_t x)
{
    const ms_tensor *tensor = ms_trace_at(trace, x);
    return tensor->size[tensor->n_dims - 1];
}

uint32_t ms_layers_vector(ms_trace *trace, const char *role, int64_t n)
{
    return ms_trace_parameter(trace, role, 1, &n);
}

uint32_t ms_layers_made(ms_trace *trace, const char *op, uint8_t dtype,
                        uint32_t n_dims, const int64_t *dims)
{
    ms_trace_begin(trace, op);
    uint32_t y = ms_trace_make(trace, "out", dtype, n_dims, dims);
    ms_trace_end(trace, 0, false);
    return y;
}
