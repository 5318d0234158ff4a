/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention without projections, of queries, keys and values that other layers
 * make. */
#include "graphs/layers/attention/sdpa.h"
#include "graphs/layers/layers.h"
#include "graphs/trace/trace.h"

#include <string.h>

enum { CAUSAL, DROPOUT };
const ms_field ms_givenattention_fields[MS_GIVENATTENTION_FIELDS] = {
    {.name = "causal", .type = MS_BOOL, .help = "mask what comes later"},
    MS_LAYERS_WEIGHTS_DROPOUT_FIELD,
};

/* Does the shape of x fit that of q?  The heads may differ, and so may the
 * sequence where nothing is masked. */
static bool fits_query(const ms_tensor *q, const ms_tensor *x, bool causal,
                       bool shares)
{
    int64_t heads = x->n_dims == 4 ? x->size[1] : 0;
    return heads > 0 && q->n_dims == 4 && q->size[0] == x->size[0] &&
           q->size[3] == x->size[3] && (!causal || q->size[2] == x->size[2]) &&
           (shares ? q->size[1] % heads == 0 : q->size[1] == heads);
}

/* Keys and values must have one shape; FlashAttention lets several heads of q
 * share one of theirs. */
static ms_err need_heads(ms_trace *trace, const ms_layer *layer,
                         const uint32_t *in)
{
    bool shares = trace->kernels.attention->shares_heads;
    char want[MS_LAYERS_SHAPE], have[MS_LAYERS_SHAPE];
    for (uint32_t i = 0; i < 3; i++) {
        MS_TRY(ms_layers_need_float(trace, layer, in[i]));
        const ms_tensor *q = ms_trace_at(trace, in[0]);
        const ms_tensor *k = ms_trace_at(trace, in[i < 2 ? i : 1]);
        const ms_tensor *x = ms_trace_at(trace, in[i]);
        if (fits_query(q, x, layer->field[CAUSAL].b, shares) &&
            x->size[1] == k->size[1] && x->size[2] == k->size[2])
            continue;
        return ms_trace_fail(
            trace, layer,
            shares ? "q, k and v need [heads, sequence, dim]; heads of k "
                     "and v may divide q's"
                   : "q, k and v need one shape, [heads, sequence, dim]",
            "\"%s\" attends from \"%s\", %s, to \"%s\": %s", layer->name,
            ms_layers_source(trace->settings, layer, 0),
            ms_layers_shape(q, want),
            ms_layers_source(trace->settings, layer, i),
            ms_layers_shape(x, have));
    }
    return MS_OK;
}

ms_err ms_givenattention_forward(ms_trace *trace, const ms_layer *layer,
                                 const uint32_t *in, uint32_t *out)
{
    ms_attended attended = {.causal = layer->field[CAUSAL].b,
                            .dropout = layer->field[DROPOUT].f};
    MS_TRY(need_heads(trace, layer, in));
    *out = ms_sdpa_run(trace, trace->kernels.attention, in, attended);
    return trace->err;
}
