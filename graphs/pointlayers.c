/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Layers that work element by element: activations, dropout, joins. */
#include "graphs/layers.h"

/* ---- activations --------------------------------------------------------- */

const ms_field ms_pointlayers_in_place_fields[MS_POINTLAYERS_IN_PLACE] = {
    {.name = "inplace", .type = MS_BOOL, .help = "overwrite the (first) input"},
};

/* What PyTorch finds out in backward: the input is needed unchanged. */
static ms_err need_unsaved(ms_trace *trace, const ms_layer *layer, uint32_t x)
{
    if (trace->err)
        return trace->err;
    uint32_t s = ms_trace_at(trace, x)->storage;
    if (trace->counts[s].saves == 0)
        return MS_OK;
    return ms_trace_fail(trace, layer, "set \"inplace\" to false",
                         "\"%s\" overwrites the output of \"%s\", which is "
                         "kept for backward",
                         layer->name, ms_layers_source(trace, layer, 0));
}

static ms_err unary(ms_trace *trace, const ms_layer *layer,
                    const ms_unary *kind, uint32_t x, uint32_t *out)
{
    MS_TRY(ms_layers_need_float(trace, layer, x));
    *out = ms_pointwise_unary(trace, kind, x);
    return trace->err;
}

static ms_err unary_or_in_place(ms_trace *trace, const ms_layer *layer,
                                const ms_unary *kind, uint32_t x, uint32_t *out)
{
    if (!layer->field[0].b)
        return unary(trace, layer, kind, x, out);
    MS_TRY(ms_layers_need_float(trace, layer, x));
    MS_TRY(need_unsaved(trace, layer, x));
    *out = ms_pointwise_unary_in_place(trace, kind, x);
    return trace->err;
}

#define ACTIVATION(name, kind)                                                 \
    ms_err ms_pointlayers_##name(ms_trace *trace, const ms_layer *layer,       \
                                 const uint32_t *in, uint32_t *out)            \
    {                                                                          \
        return unary_or_in_place(trace, layer, &ms_pointwise_##kind, in[0],    \
                                 out);                                         \
    }

ACTIVATION(relu, relu)
ACTIVATION(silu, silu)
ACTIVATION(sigmoid, sigmoid)
ACTIVATION(tanh, tanh)
ACTIVATION(leaky_relu, leaky_relu)
ACTIVATION(elu, elu)
ACTIVATION(hardswish, hardswish)
ACTIVATION(relu6, hardtanh)

ms_err ms_pointlayers_gelu(ms_trace *trace, const ms_layer *layer,
                           const uint32_t *in, uint32_t *out)
{
    return unary(trace, layer, &ms_pointwise_gelu, in[0], out);
}

/* GPT-2's tanh approximation: seven ops where kernels are eager, else one. */
ms_err ms_pointlayers_gelu_new(ms_trace *trace, const ms_layer *layer,
                               const uint32_t *in, uint32_t *out)
{
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    if (trace->training->kernels == MS_EAGER)
        *out = ms_pointwise_gelu_new(trace, in[0]);
    else
        *out = ms_pointwise_unary(trace, &ms_pointwise_gelu, in[0]);
    return trace->err;
}

ms_err ms_pointlayers_softmax(ms_trace *trace, const ms_layer *layer,
                              const uint32_t *in, uint32_t *out)
{
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    *out = ms_norm_softmax(trace, in[0]);
    return trace->err;
}

const ms_field ms_pointlayers_dropout_fields[MS_POINTLAYERS_DROPOUT] = {
    {.name = "p",
     .type = MS_FLOAT,
     .fallback.f = 0.1,
     .low = 0,
     .high = 1,
     .help = "probability of a zero; 0 keeps the input itself"},
};

ms_err ms_pointlayers_dropout(ms_trace *trace, const ms_layer *layer,
                              const uint32_t *in, uint32_t *out)
{
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    *out = ms_pointwise_dropout(trace, in[0], layer->field[0].f);
    return trace->err;
}

/* ---- joins --------------------------------------------------------------- */

/* b's sizes, aligned at the end, are a's or 1. */
static bool broadcasts(const ms_tensor *a, const ms_tensor *b)
{
    if (b->n_dims > a->n_dims)
        return false;
    for (uint32_t d = 1; d <= b->n_dims; d++) {
        int64_t size = b->size[b->n_dims - d];
        if (size != 1 && size != a->size[a->n_dims - d])
            return false;
    }
    return true;
}

static ms_err fail_shapes(ms_trace *trace, const ms_layer *layer,
                          const uint32_t *in, const char *hint)
{
    char first[MS_LAYERS_SHAPE], second[MS_LAYERS_SHAPE];

    return ms_trace_fail(
        trace, layer, hint,
        "\"%s\" joins \"%s\" and \"%s\", whose shapes do not agree: %s and %s",
        layer->name, ms_layers_source(trace, layer, 0),
        ms_layers_source(trace, layer, 1),
        ms_layers_shape(ms_trace_at(trace, in[0]), first),
        ms_layers_shape(ms_trace_at(trace, in[1]), second));
}

static ms_err need_shapes(ms_trace *trace, const ms_layer *layer,
                          const uint32_t *in, bool first_is_widest)
{
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    MS_TRY(ms_layers_need_float(trace, layer, in[1]));
    const ms_tensor *a = ms_trace_at(trace, in[0]);
    const ms_tensor *b = ms_trace_at(trace, in[1]);
    if (broadcasts(a, b) || (!first_is_widest && broadcasts(b, a)))
        return MS_OK;
    return fail_shapes(trace, layer, in,
                       "both inputs need one shape, or one that broadcasts");
}

ms_err ms_pointlayers_add(ms_trace *trace, const ms_layer *layer,
                          const uint32_t *in, uint32_t *out)
{
    bool in_place = layer->field[0].b;

    MS_TRY(need_shapes(trace, layer, in, in_place));
    if (in_place)
        MS_TRY(need_unsaved(trace, layer, in[0]));
    *out = in_place ? ms_pointwise_add_in_place(trace, in[0], in[1])
                    : ms_pointwise_add(trace, in[0], in[1]);
    return trace->err;
}

#define JOIN(name)                                                             \
    ms_err ms_pointlayers_##name(ms_trace *trace, const ms_layer *layer,       \
                                 const uint32_t *in, uint32_t *out)            \
    {                                                                          \
        MS_TRY(need_shapes(trace, layer, in, false));                          \
        *out = ms_pointwise_##name(trace, in[0], in[1]);                       \
        return trace->err;                                                     \
    }

JOIN(sub)
JOIN(mul)
JOIN(div)

/* ---- gates --------------------------------------------------------------- */

/* activation(gate) * up: two ops where kernels are eager, else one. */
static ms_err gated(ms_trace *trace, const ms_layer *layer,
                    const ms_unary *activation, const char *fused,
                    const uint32_t *in, uint32_t *out)
{
    MS_TRY(need_shapes(trace, layer, in, false));
    const ms_tensor *a = ms_trace_at(trace, in[0]);
    const ms_tensor *b = ms_trace_at(trace, in[1]);
    if (!broadcasts(a, b) || !broadcasts(b, a))
        return fail_shapes(trace, layer, in, "gate and up need the same shape");
    if (trace->training->kernels != MS_EAGER) {
        *out = ms_gated_product(trace, fused, in[0], in[1]);
        return trace->err;
    }
    uint32_t open = ms_pointwise_unary(trace, activation, in[0]);
    *out = ms_pointwise_mul(trace, open, in[1]);
    ms_trace_drop(trace, open);
    return trace->err;
}

ms_err ms_pointlayers_swiglu(ms_trace *trace, const ms_layer *layer,
                             const uint32_t *in, uint32_t *out)
{
    return gated(trace, layer, &ms_pointwise_silu, "swiglu", in, out);
}

ms_err ms_pointlayers_geglu(ms_trace *trace, const ms_layer *layer,
                            const uint32_t *in, uint32_t *out)
{
    return gated(trace, layer, &ms_pointwise_gelu, "geglu", in, out);
}
