/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Layers that work element by element: activations, dropout, joins. */
#include "graphs/aten/opcall.h"
#include "graphs/layers/layers.h"
#include "graphs/layertypes.h"
#include "graphs/trace/trace.h"

/* ---- activations --------------------------------------------------------- */

const ms_field ms_pointlayers_in_place_fields[MS_POINTLAYERS_IN_PLACE] = {
    {.name = "inplace", .type = MS_BOOL, .help = "overwrite the (first) input"},
};

/* Runs the op of the layer's type over inputs of one shape, or that broadcast
 * to the widest of them.  What it saves is in its row of the aten table. */
static ms_err map(ms_trace *trace, const ms_layer *layer, const uint32_t *in,
                  uint32_t widest, uint32_t *out)
{
    /* Only clamp reads these numbers: its two bounds, of which the values do
     * not matter here. */
    static const ms_oparg args[] = {{.kind = MS_ARG_TENSOR},
                                    {.kind = MS_ARG_FLOAT, .value.f = 0},
                                    {.kind = MS_ARG_FLOAT, .value.f = 1}};
    const ms_layer_kind *kind = layer->kind;
    ms_opcall call = {
        .op = kind->op, .args = args, .n_args = 3, .flops = kind->flops};
    for (uint32_t k = 0; k < MS_OPCALL_OUTPUTS; k++)
        ms_opcall_like(trace, &call.made[k], widest);
    if (!trace->settings->cpu) /* log_sigmoid's buffer is for the CPU */
        call.made[1] =
            (ms_opcall_made){.dtype = call.made[1].dtype, .n_dims = 1};
    *out = ms_opcall_run(trace, &call, in, layer->n_in);
    return trace->err;
}

static ms_err map_in_place(ms_trace *trace, const ms_layer *layer,
                           const uint32_t *in, uint32_t *out)
{
    const ms_layer_kind *kind = layer->kind;
    ms_opcall call = {.op = kind->op, .flops = kind->flops};
    MS_TRY(ms_layers_need_unsaved(trace, layer, in[0]));
    *out = ms_opcall_in_place(trace, &call, in, layer->n_in);
    return trace->err;
}

ms_err ms_pointlayers_unary(ms_trace *trace, const ms_layer *layer,
                            const uint32_t *in, uint32_t *out)
{
    bool in_place = layer->kind->n_fields > 0 && layer->field[0].b;
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    return in_place ? map_in_place(trace, layer, in, out)
                    : map(trace, layer, in, in[0], out);
}

/* x / (1 + |x|) */
ms_err ms_pointlayers_softsign(ms_trace *trace, const ms_layer *layer,
                               const uint32_t *in, uint32_t *out)
{
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    uint32_t size = ms_opcall_like_run(trace, "aten::abs", in, 1);
    uint32_t both[2] = {in[0],
                        ms_opcall_like_run(trace, "aten::add", &size, 1)};
    ms_trace_drop(trace, size);
    *out = ms_opcall_like_run(trace, "aten::div", both, 2);
    ms_trace_drop(trace, both[1]);
    return trace->err;
}

const ms_field ms_pointlayers_pow_fields[MS_POINTLAYERS_POW] = {
    {.name = "exponent", .type = MS_FLOAT, .fallback.f = 2, .help = "a number"},
};

/* The exponent has no effect on sizes. */
ms_err ms_pointlayers_pow(ms_trace *trace, const ms_layer *layer,
                          const uint32_t *in, uint32_t *out)
{
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    *out = ms_pointwise_pow(trace, in[0]);
    return trace->err;
}

const ms_field ms_pointlayers_prelu_fields[MS_POINTLAYERS_PRELU] = {
    {.name = "parameters",
     .type = MS_INT,
     .fallback.i = 1,
     .low = 1,
     .high = INT64_C(1) << 24,
     .help = "slopes: 1, or one per channel"},
};

ms_err ms_pointlayers_prelu(ms_trace *trace, const ms_layer *layer,
                            const uint32_t *in, uint32_t *out)
{
    int64_t n = layer->field[0].i;
    char shape[MS_LAYERS_SHAPE];
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    const ms_tensor *x = ms_trace_at(trace, in[0]);
    if (n != 1 && (x->n_dims < 2 || n != x->size[1]))
        return ms_trace_fail(trace, layer, "one slope, or one per channel",
                             "\"%s\" has %lld slopes, but \"%s\" gives %s",
                             layer->name, (long long)n,
                             ms_layers_source(trace->settings, layer, 0),
                             ms_layers_shape(x, shape));
    uint32_t inputs[2] = {in[0], ms_layers_vector(trace, "weight", n)};
    *out = ms_opcall_like_run(trace, "aten::prelu", inputs, 2);
    return trace->err;
}

const ms_field ms_pointlayers_code_fields[MS_POINTLAYERS_CODE] = {
    MS_LAYERS_CODE_FIELD};

/* The tanh approximation of GPT-2: seven ops, or one kernel where the
 * activation is fused. */
ms_err ms_pointlayers_gelu_new(ms_trace *trace, const ms_layer *layer,
                               const uint32_t *in, uint32_t *out)
{
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    if (ms_layers_is_apart(trace->kernels.activation, layer->field[0].i))
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

#define P_FIELD                                                                \
    {                                                                          \
        .name = "p", .type = MS_FLOAT, .fallback.f = 0.1, .low = 0, .high = 1, \
        .help = "probability of a zero; 0 keeps the input itself"              \
    }
const ms_field ms_pointlayers_dropout_fields[MS_POINTLAYERS_DROPOUT] = {
    P_FIELD,
    {.name = "inplace", .type = MS_BOOL, .help = "overwrite the input"},
};
const ms_field ms_pointlayers_parts_fields[MS_POINTLAYERS_PARTS] = {P_FIELD};

/* x.mul_(noise): dropout in place is composed of these ops on every device. */
static ms_err dropout_in_place(ms_trace *trace, const ms_layer *layer,
                               uint32_t x, uint32_t *out)
{
    ms_opcall call = {.op = "aten::mul", .flops = 1};
    MS_TRY(ms_layers_need_unsaved(trace, layer, x));
    ms_trace_begin(trace, "aten::bernoulli_");
    uint32_t both[2] = {x, ms_trace_make_like(trace, "mask", x)};
    ms_trace_end(trace, 0, false);
    *out = ms_opcall_in_place(trace, &call, both, 2);
    ms_trace_drop(trace, both[1]);
    return trace->err;
}

ms_err ms_pointlayers_dropout(ms_trace *trace, const ms_layer *layer,
                              const uint32_t *in, uint32_t *out)
{
    double p = layer->field[0].f;
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    if (layer->field[1].b && p > 0 && trace->settings->train)
        return dropout_in_place(trace, layer, in[0], out);
    const ms_kernel_hooks *hooks = trace->kernels.hooks;
    if (hooks->defers_dropout && hooks->defers_dropout(trace, layer))
        ms_trace_ref(trace, *out = in[0]);
    else
        *out = ms_pointwise_dropout(trace, in[0], p);
    return trace->err;
}

/* x times noise that has the sizes of its first n dimensions and 1 in the
 * others: whole parts of x are dropped. */
static ms_err drop_parts(ms_trace *trace, const ms_layer *layer, uint32_t x,
                         uint32_t n, uint32_t *out)
{
    if (layer->field[0].f <= 0 || !trace->settings->train) {
        ms_trace_ref(trace, *out = x);
        return trace->err;
    }
    ms_tensor noise = *ms_trace_at(trace, x);
    for (uint32_t d = n; d < noise.n_dims; d++)
        noise.size[d] = 1;
    ms_trace_begin(trace, "aten::bernoulli_");
    uint32_t both[2] = {
        x, ms_trace_make(trace, "mask", noise.dtype, noise.n_dims, noise.size)};
    ms_trace_end(trace, 0, false);
    *out = ms_opcall_like_run(trace, "aten::mul", both, 2);
    ms_trace_drop(trace, both[1]);
    return trace->err;
}

ms_err ms_pointlayers_dropout2d(ms_trace *trace, const ms_layer *layer,
                                const uint32_t *in, uint32_t *out)
{
    MS_TRY(ms_layers_need_dim(trace, layer, in[0], 0));
    return drop_parts(trace, layer, in[0], 2, out);
}

/* StochasticDepth of torchvision in mode "row": whole samples are dropped. */
ms_err ms_pointlayers_depth(ms_trace *trace, const ms_layer *layer,
                            const uint32_t *in, uint32_t *out)
{
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    return drop_parts(trace, layer, in[0], 1, out);
}

const ms_field ms_pointlayers_cast_fields[MS_POINTLAYERS_CAST] = {
    {.name = "to",
     .type = MS_WORD,
     .words = "float32|float16|bfloat16|float64",
     .help = "the dtype"},
};

ms_err ms_pointlayers_cast(ms_trace *trace, const ms_layer *layer,
                           const uint32_t *in, uint32_t *out)
{
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    *out = ms_cast_to(trace, in[0], (uint8_t)layer->field[0].i);
    return trace->err;
}

/* ---- joins --------------------------------------------------------------- */

/* Are the sizes of b, aligned at the end, those of a or 1? */
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
                          const uint32_t *in, uint32_t i, const char *hint)
{
    char first[MS_LAYERS_SHAPE], second[MS_LAYERS_SHAPE];
    return ms_trace_fail(
        trace, layer, hint,
        "\"%s\" joins \"%s\" and \"%s\", whose shapes do not agree: %s and %s",
        layer->name, ms_layers_source(trace->settings, layer, 0),
        ms_layers_source(trace->settings, layer, i),
        ms_layers_shape(ms_trace_at(trace, in[0]), first),
        ms_layers_shape(ms_trace_at(trace, in[i]), second));
}

/* The input to which all others broadcast.  An op in place writes to the first,
 * which therefore has to be it. */
static ms_err find_widest(ms_trace *trace, const ms_layer *layer,
                          const uint32_t *in, bool in_place, uint32_t *widest)
{
    uint32_t wide = 0;
    for (uint32_t i = 0; i < layer->n_in; i++) {
        MS_TRY(ms_layers_need_float(trace, layer, in[i]));
        if (!in_place && !broadcasts(ms_trace_at(trace, in[wide]),
                                     ms_trace_at(trace, in[i])))
            wide = i;
    }
    for (uint32_t i = 0; i < layer->n_in; i++)
        if (!broadcasts(ms_trace_at(trace, in[wide]),
                        ms_trace_at(trace, in[i])))
            return fail_shapes(
                trace, layer, in, i == 0 ? wide : i,
                "the inputs need one shape, or shapes that broadcast");
    *widest = in[wide];
    return MS_OK;
}

/* The fused kernel exists only for two tensors of one shape. */
static uint32_t drop_and_add(ms_trace *trace, uint32_t x, uint32_t residual)
{
    if (broadcasts(ms_trace_at(trace, x), ms_trace_at(trace, residual)) &&
        broadcasts(ms_trace_at(trace, residual), ms_trace_at(trace, x)))
        return trace->kernels.hooks->dropout_add(trace, x, residual);
    uint32_t dropped = ms_pointwise_dropout(trace, x, 1);
    uint32_t y = ms_pointwise_add(trace, residual, dropped);
    ms_trace_drop(trace, dropped);
    return y;
}

ms_err ms_pointlayers_join(ms_trace *trace, const ms_layer *layer,
                           const uint32_t *in, uint32_t *out)
{
    bool in_place = layer->kind->n_fields > 0 && layer->field[0].b;
    uint32_t widest;
    MS_TRY(find_widest(trace, layer, in, in_place, &widest));
    const ms_kernel_hooks *hooks = trace->kernels.hooks;
    for (uint32_t i = 0; hooks->is_deferred && i < 2 && i < layer->n_in; i++)
        if (hooks->is_deferred(trace, layer, i)) {
            *out = drop_and_add(trace, in[i], in[1 - i]);
            return trace->err;
        }
    return in_place ? map_in_place(trace, layer, in, out)
                    : map(trace, layer, in, widest, out);
}

/* An input of the step: a byte for each element of x. */
static uint32_t mask_like(ms_trace *trace, uint32_t x)
{
    ms_tensor like = *ms_trace_at(trace, x);
    return ms_trace_input(trace, "mask", MS_BYTE, like.n_dims, like.size);
}

ms_err ms_pointlayers_where(ms_trace *trace, const ms_layer *layer,
                            const uint32_t *in, uint32_t *out)
{
    uint32_t widest;
    MS_TRY(find_widest(trace, layer, in, false, &widest));
    uint32_t inputs[3] = {mask_like(trace, widest), in[0], in[1]};
    ms_opcall call = {.op = "aten::where", .flops = 1};
    ms_opcall_like(trace, &call.made[0], widest);
    *out = ms_opcall_run(trace, &call, inputs, 3);
    return trace->err;
}

ms_err ms_pointlayers_masked_fill(ms_trace *trace, const ms_layer *layer,
                                  const uint32_t *in, uint32_t *out)
{
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    *out = ms_pointwise_masked_fill(trace, in[0], mask_like(trace, in[0]));
    return trace->err;
}

/* ---- gates --------------------------------------------------------------- */

/* activation(gate) * up: two ops, or one kernel where the activation is fused.
 */
static uint32_t gate_up(ms_trace *trace, const ms_layer *layer,
                        const ms_unary *activation, const char *fused,
                        uint32_t gate, uint32_t up)
{
    ms_kernel kernel = trace->kernels.activation;
    if (!ms_layers_is_apart(kernel, layer->field[0].i))
        return kernel.maker->gate(trace, fused, gate, up);
    uint32_t open = ms_pointwise_unary(trace, activation, gate);
    uint32_t y = ms_pointwise_mul(trace, open, up);
    ms_trace_drop(trace, open);
    return y;
}

/* up, gate = x.chunk(2, dim=-1) */
static ms_err gate_halves(ms_trace *trace, const ms_layer *layer,
                          const ms_unary *activation, const char *fused,
                          uint32_t x, uint32_t *out)
{
    char shape[MS_LAYERS_SHAPE];
    uint32_t halves[2];
    int64_t width = ms_layers_last_dim(trace, x);
    int64_t sizes[2] = {width / 2, width / 2};
    if (width % 2 != 0)
        return ms_trace_fail(
            trace, layer, "give it an even size, or gate and up apart",
            "\"%s\" halves the last dimension, but \"%s\" gives %s",
            layer->name, ms_layers_source(trace->settings, layer, 0),
            ms_layers_shape(ms_trace_at(trace, x), shape));
    ms_split_sizes(trace, x, ms_trace_at(trace, x)->n_dims - 1u, 2, sizes,
                   halves);
    *out = gate_up(trace, layer, activation, fused, halves[1], halves[0]);
    ms_split_drop(trace, 2, halves);
    return trace->err;
}

static ms_err gated(ms_trace *trace, const ms_layer *layer,
                    const ms_unary *activation, const char *fused,
                    const uint32_t *in, uint32_t *out)
{
    for (uint32_t i = 0; i < layer->n_in; i++)
        MS_TRY(ms_layers_need_float(trace, layer, in[i]));
    const ms_tensor *a = ms_trace_at(trace, in[0]);
    const ms_tensor *b = ms_trace_at(trace, in[layer->n_in - 1]);
    if (trace->kernels.joins_gates && a->storage == b->storage &&
        a->size[a->n_dims - 1] % 2 == 0 &&
        !ms_layers_is_apart(trace->kernels.activation, layer->field[0].i)) {
        *out = ms_gated_halves(trace, fused, in[0]);
        return trace->err;
    }
    if (layer->n_in == 1 ||
        (trace->kernels.joins_gates && a->storage == b->storage))
        return gate_halves(trace, layer, activation, fused, in[0], out);
    if (!broadcasts(a, b) || !broadcasts(b, a))
        return fail_shapes(trace, layer, in, 1,
                           "gate and up need the same shape");
    *out = gate_up(trace, layer, activation, fused, in[0], in[1]);
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
