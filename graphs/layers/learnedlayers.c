/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parameters that act as tokens: class tokens and learned positions. */
#include "graphs/layers/layers.h"
#include "graphs/trace/trace.h"

const ms_field ms_learnedlayers_tokens_fields[MS_LEARNEDLAYERS_TOKENS] = {
    {.name = "tokens",
     .type = MS_INT,
     .low = 0,
     .high = INT64_C(1) << 20,
     .help = "how many stand before the sequence (ViT: 1)"},
};

/* cat((tokens.expand(batch, -1, -1), x), dim=1) */
static uint32_t prepend(ms_trace *trace, uint32_t x, int64_t tokens)
{
    if (trace->err)
        return MS_NONE;
    ms_tensor flat = *ms_trace_at(trace, x);
    int64_t dims[3] = {1, tokens, flat.size[2]};
    uint32_t learned = ms_trace_parameter(trace, "tokens", 3, dims);
    uint32_t parts[2] = {ms_view_expand(trace, learned, 0, flat.size[0]), x};
    uint32_t y = ms_view_cat(trace, parts, 2, 1);
    ms_trace_drop(trace, parts[0]);
    return y;
}

/* The counted reference to x is a Python variable, which is bound to the result
 * of prepend(); what the layer was given stays with its caller. */
ms_err ms_learnedlayers_tokens(ms_trace *trace, const ms_layer *layer,
                               const uint32_t *in, uint32_t *out)
{
    int64_t tokens = layer->field[0].i;
    char shape[MS_LAYERS_SHAPE];
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    if (ms_trace_at(trace, in[0])->n_dims != 3)
        return ms_trace_fail(trace, layer, "turn it into [sequence, width]",
                             "\"%s\" needs [sequence, width], but \"%s\" "
                             "gives %s",
                             layer->name,
                             ms_layers_source(trace->settings, layer, 0),
                             ms_layers_shape(ms_trace_at(trace, in[0]), shape));
    uint32_t x = in[0];
    ms_trace_ref(trace, x);
    if (tokens > 0)
        x = ms_trace_rebind(trace, x, prepend(trace, x, tokens));
    if (trace->err)
        return trace->err;
    int64_t dims[3] = {1, ms_trace_at(trace, x)->size[1],
                       ms_trace_at(trace, x)->size[2]};
    uint32_t positions = ms_trace_parameter(trace, "positions", 3, dims);
    *out = ms_pointwise_add(trace, x, positions);
    ms_trace_drop(trace, x);
    return trace->err;
}
