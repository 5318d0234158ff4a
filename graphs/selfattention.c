/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The attention layer, in the three kernel sets. */
#include "graphs/layers.h"

static const ms_tensor *at(ms_trace *trace, uint32_t tensor)
{
    return ms_trace_at(trace, tensor);
}

static int64_t last_dim(const ms_tensor *tensor)
{
    return tensor->size[tensor->n_dims - 1];
}

enum { ATTENTION_HEADS, ATTENTION_CAUSAL, ATTENTION_DROPOUT, ATTENTION_BIAS };
const ms_field ms_selfattention_fields[MS_SELFATTENTION_FIELDS] = {
    {.name = "heads",
     .type = MS_INT,
     .required = true,
     .low = 1,
     .high = INT64_C(1) << 24,
     .help = "attention heads; must divide the width"},
    {.name = "causal",
     .type = MS_BOOL,
     .fallback.b = true,
     .help = "mask what comes later"},
    {.name = "dropout",
     .type = MS_FLOAT,
     .low = 0,
     .high = 1,
     .help = "dropout of the attention weights"},
    {.name = "bias",
     .type = MS_BOOL,
     .fallback.b = true,
     .help = "biases of the four projections"},
};

/* [batch, sequence, width] as [batch, heads, sequence, width / heads]. */
static uint32_t heads_of(ms_trace *trace, uint32_t x, int64_t heads)
{
    if (trace->err)
        return MS_NONE;
    const ms_tensor *flat = at(trace, x);
    int64_t dims[4] = {flat->size[0], flat->size[1], heads,
                       flat->size[2] / heads};
    uint32_t view = ms_view_reshape(trace, x, 4, dims);
    uint32_t y = ms_view_transpose(trace, view, 1, 2);
    ms_trace_drop(trace, view);
    return y;
}

/* The causal mask as GPT-2's code holds it: a buffer [1, 1, n, n] of ones. */
static uint32_t mask_scores(ms_trace *trace, uint32_t scores)
{
    if (trace->err)
        return MS_NONE;
    int64_t sequence = at(trace, scores)->size[2];
    int64_t longest = (int64_t)trace->model->max_sequence;
    if (longest == 0)
        longest = sequence;
    int64_t whole[4] = {1, 1, longest, longest};
    int64_t used[4] = {1, 1, sequence, sequence};
    uint32_t ones =
        ms_trace_buffer(trace, "causal_mask", trace->weight_dtype, 4, whole);
    uint32_t mask = ms_pointwise_is_zero(trace, ones, 4, used);
    uint32_t y = ms_pointwise_masked_fill(trace, scores, mask);
    ms_trace_drop(trace, mask);
    return y;
}

static uint32_t replaced(ms_trace *trace, uint32_t old, uint32_t by)
{
    ms_trace_drop(trace, old);
    return by;
}

/* Scores, softmax, dropout, weighted sum, each an op of its own.  Korthikanti
 * et al. count the fused scale-mask-softmax of Megatron. */
static uint32_t eager_core(ms_trace *trace, const ms_layer *layer,
                           const uint32_t *qkv)
{
    bool fused = trace->training->kernels == MS_KORTHIKANTI;

    trace->op_flags |= MS_OP_CORE;
    uint32_t keys = ms_view_transpose(trace, qkv[1], 2, 3);
    uint32_t a = ms_matmul_batched(trace, qkv[0], keys);
    ms_trace_drop(trace, keys);
    if (!fused) {
        a = replaced(trace, a, ms_pointwise_mul_scalar(trace, a));
        if (layer->field[ATTENTION_CAUSAL].b)
            a = replaced(trace, a, mask_scores(trace, a));
    }
    a = replaced(trace, a, ms_norm_softmax(trace, a));
    double p = layer->field[ATTENTION_DROPOUT].f;
    a = replaced(trace, a, ms_pointwise_dropout(trace, a, p));
    trace->op_flags &= (uint8_t)~MS_OP_CORE;
    uint32_t y = ms_matmul_batched(trace, a, qkv[2]);
    ms_trace_drop(trace, a);
    return y;
}

static uint32_t attention_core(ms_trace *trace, const ms_layer *layer,
                               const uint32_t *qkv)
{
    if (trace->training->kernels == MS_FLASH)
        return ms_attention_flash(trace, qkv[0], qkv[1], qkv[2],
                                  layer->field[ATTENTION_CAUSAL].b);
    return eager_core(trace, layer, qkv);
}

static uint32_t projection(ms_trace *trace, const ms_layer *layer, uint32_t x,
                           const char *weight_role, const char *bias_role,
                           int64_t width)
{
    uint32_t bias = MS_NONE;

    if (trace->err)
        return MS_NONE;
    int64_t dims[2] = {width, last_dim(at(trace, x))};
    uint32_t weight = ms_trace_parameter(trace, weight_role, 2, dims);
    if (layer->field[ATTENTION_BIAS].b)
        bias = ms_trace_parameter(trace, bias_role, 1, &width);
    return ms_matmul_linear(trace, x, weight, bias);
}

/* y.transpose(1, 2).contiguous().view(batch, sequence, width) */
static uint32_t join_heads(ms_trace *trace, uint32_t y, int64_t width)
{
    uint32_t turned = ms_view_transpose(trace, y, 1, 2);
    uint32_t whole = ms_view_contiguous(trace, turned);

    ms_trace_drop(trace, y);
    ms_trace_drop(trace, turned);
    if (trace->err)
        return MS_NONE;
    int64_t dims[3] = {at(trace, whole)->size[0], at(trace, whole)->size[1],
                       width};
    uint32_t flat = ms_view_reshape(trace, whole, 3, dims);
    ms_trace_drop(trace, whole);
    return flat;
}

ms_err ms_selfattention_forward(ms_trace *trace, const ms_layer *layer,
                                const uint32_t *in, uint32_t *out)
{
    int64_t heads = layer->field[ATTENTION_HEADS].i;
    uint32_t qkv[3];

    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    const ms_tensor *x = at(trace, in[0]);
    int64_t width = last_dim(x);
    if (x->n_dims != 3)
        return ms_trace_fail(trace, layer, "give the model a sequence input",
                             "attention \"%s\" needs [batch, sequence, width]",
                             layer->name);
    if (width % heads != 0)
        return ms_trace_fail(
            trace, layer, "choose heads that divide the width",
            "attention \"%s\": a width of %lld does not divide into %lld "
            "heads",
            layer->name, (long long)width, (long long)heads);
    uint32_t fused =
        projection(trace, layer, in[0], "qkv.weight", "qkv.bias", 3 * width);
    ms_view_split(trace, fused, 3, qkv);
    ms_trace_drop(trace, fused);
    /* As in GPT-2's code: k, then q, then v become heads. */
    static const int order[3] = {1, 0, 2};
    for (int i = 0; i < 3 && !trace->err; i++) {
        uint32_t *part = &qkv[order[i]];
        *part = replaced(trace, *part, heads_of(trace, *part, heads));
    }
    uint32_t y = trace->err ? MS_NONE : attention_core(trace, layer, qkv);
    y = trace->err ? MS_NONE : join_heads(trace, y, width);
    *out = projection(trace, layer, y, "proj.weight", "proj.bias", width);
    ms_trace_drop(trace, y);
    for (int i = 0; i < 3 && !trace->err; i++)
        ms_trace_drop(trace, qkv[i]);
    return trace->err;
}
