/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The ends of a model: losses. */
#include "graphs/layers.h"

const ms_field ms_losslayers_cross_entropy_fields[MS_LOSSLAYERS_CROSS_ENTROPY] =
    {
        {.name = "upcast",
         .type = MS_BOOL,
         .help = "logits.float() first where they are 16-bit"},
};

/* A class per row, or per pixel of [batch, classes, height, width]. */
static uint32_t class_targets(ms_trace *trace, uint32_t logits)
{
    const ms_tensor *x = ms_trace_at(trace, logits);
    int64_t dims[MS_MAX_DIMS] = {x->size[0]};
    uint32_t n = x->n_dims - 1u, first = ms_loss_is_image(x) ? 2 : 1;

    for (uint32_t d = 1; d < n; d++)
        dims[d] = x->size[d + first - 1];
    return ms_trace_input(trace, "target", MS_INT64, n, dims);
}

ms_err ms_losslayers_cross_entropy(ms_trace *trace, const ms_layer *layer,
                                   const uint32_t *in, uint32_t *out)
{
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    uint32_t target = class_targets(trace, in[0]);
    if (trace->training->kernels == MS_KORTHIKANTI) {
        *out = ms_loss_fused_cross_entropy(trace, in[0], target);
        return trace->err;
    }
    uint32_t x = in[0];
    if (layer->field[0].b)
        x = ms_pointwise_cast(trace, in[0], MS_FLOAT32);
    else
        ms_trace_ref(trace, x);
    *out = ms_loss_cross_entropy(trace, x, target);
    ms_trace_drop(trace, x);
    return trace->err;
}

ms_err ms_losslayers_mse(ms_trace *trace, const ms_layer *layer,
                         const uint32_t *in, uint32_t *out)
{
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    const ms_tensor *x = ms_trace_at(trace, in[0]);
    uint32_t target =
        ms_trace_input(trace, "target", x->dtype, x->n_dims, x->size);
    *out = ms_loss_mse(trace, in[0], target);
    return trace->err;
}

ms_err ms_losslayers_mean(ms_trace *trace, const ms_layer *layer,
                          const uint32_t *in, uint32_t *out)
{
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    *out = ms_loss_mean(trace, in[0]);
    return trace->err;
}
