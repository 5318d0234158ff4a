/* SPDX-License-Identifier: GPL-3.0-or-later */
/* T5's attention (transformers modeling_t5.py): scores without a scale, to
 * which a learned bias by distance is added, one for all layers of a stack.
 * It has no fused kernel: the ops are the same whatever training.kernels
 * says. */
#include "graphs/layers/attention/attentioncore.h"
#include "graphs/layers/attention/projections.h"
#include "graphs/layers/layers.h"
#include "graphs/layers/splitproducts.h"
#include "graphs/parallel/tensorops.h"
#include "graphs/trace/trace.h"

static const ms_tensor *at(ms_trace *trace, uint32_t tensor)
{
    return ms_trace_at(trace, tensor);
}

/* ---- the bias ------------------------------------------------------------ */

enum { BIAS_HEADS, BIAS_BUCKETS };
const ms_field ms_relativeattention_bias_fields[MS_RELATIVEATTENTION_BIAS] = {
    MS_LAYERS_HEADS_FIELD("attention heads"),
    {.name = "buckets",
     .type = MS_INT,
     .low = 0,
     .high = INT64_C(1) << 24,
     .help = "of distances; 0: zeros, nothing is learned"},
};

/* values = embedding(bucket).permute(2, 0, 1).unsqueeze(0).  The integers from
 * which the buckets are computed are freed before the first score is made. */
static uint32_t learned(ms_trace *trace, int64_t heads, int64_t buckets,
                        int64_t sequence)
{
    static const uint32_t order[3] = {2, 0, 1};
    const int64_t table[2] = {buckets, heads};
    const int64_t pairs[2] = {sequence, sequence};
    const int64_t dims[4] = {1, heads, sequence, sequence};
    uint32_t weight = ms_trace_parameter(trace, "weight", 2, table);
    uint32_t bucket =
        ms_layers_made(trace, "relative_bucket", MS_INT64, 2, pairs);
    uint32_t values = ms_lookup_embedding(trace, weight, bucket);
    ms_trace_drop(trace, bucket);
    values =
        ms_trace_rebind(trace, values, ms_view_permute(trace, values, order));
    return ms_trace_rebind(trace, values,
                           ms_view_reshape(trace, values, 4, dims));
}

ms_err ms_relativeattention_bias(ms_trace *trace, const ms_layer *layer,
                                 const uint32_t *in, uint32_t *out)
{
    int64_t heads = layer->field[BIAS_HEADS].i;
    int64_t buckets = layer->field[BIAS_BUCKETS].i;
    const ms_tensor *ids = at(trace, in[0]);
    if (ids->dtype != MS_INT64 || ids->n_dims != 2)
        return ms_trace_fail(
            trace, layer, "feed it the model's input of token ids",
            "\"%s\" needs token ids [batch, sequence]", layer->name);
    int64_t batch = ids->size[0], sequence = ids->size[1];
    bool split = ms_shards_split(trace) == MS_SPLIT_HEADS;
    int64_t own = split ? ms_shards_part(trace, heads) : heads;
    const int64_t zeros[4] = {1, own, sequence, sequence};
    const int64_t dims[4] = {batch, 1, sequence, sequence};
    uint32_t bias = buckets > 0 ? learned(trace, heads, buckets, sequence)
                                : ms_layers_made(trace, "aten::zeros",
                                                 trace->weight_dtype, 4, zeros);
    if (buckets > 0 && split)
        bias = ms_trace_rebind(trace, bias, ms_tensorops_heads(trace, bias));
    uint32_t mask = ms_layers_made(trace, "mask", trace->weight_dtype, 4, dims);
    *out = ms_pointwise_add(trace, bias, mask);
    ms_trace_drop(trace, bias);
    ms_trace_drop(trace, mask);
    return trace->err;
}

/* ---- attention ----------------------------------------------------------- */

enum { HEADS, HEAD_DIM, DROPOUT };
const ms_field ms_relativeattention_fields[MS_RELATIVEATTENTION_FIELDS] = {
    MS_LAYERS_HEADS_FIELD("attention heads"),
    {.name = "head_dim",
     .type = MS_INT,
     .required = true,
     .low = 1,
     .high = INT64_C(1) << 24,
     .help = "channels of a head"},
    MS_LAYERS_WEIGHTS_DROPOUT_FIELD,
};

static bool is_split(const ms_trace *trace)
{
    return ms_shards_split(trace) == MS_SPLIT_HEADS;
}

/* Of this rank. */
static int64_t heads_here(const ms_trace *trace, const ms_layer *layer)
{
    int64_t heads = layer->field[HEADS].i;
    return is_split(trace) ? ms_shards_part(trace, heads) : heads;
}

/* linear(x).view(batch, -1, heads, dim).transpose(1, 2) */
static uint32_t heads_of(ms_trace *trace, const ms_layer *layer, uint32_t x,
                         const char *role)
{
    int64_t heads = heads_here(trace, layer), dim = layer->field[HEAD_DIM].i;
    const char *const roles[2] = {role, NULL};
    uint32_t flat = ms_splitproducts_product(
        trace, layer, roles, false, x, heads * dim,
        is_split(trace) ? MS_SPLIT_COLUMNS : MS_SPLIT_NOT);
    return ms_trace_rebind(trace, flat,
                           ms_projections_heads(trace, flat, heads));
}

/* The bias must have been made for these heads and this sequence. */
static ms_err check(ms_trace *trace, const ms_layer *layer, const uint32_t *in)
{
    char shape[MS_LAYERS_SHAPE];
    for (uint32_t i = 0; i < layer->n_in; i++)
        MS_TRY(ms_layers_need_float(trace, layer, in[i]));
    for (uint32_t i = 0; i < layer->n_in; i += 2)
        if (at(trace, in[i])->n_dims != 3)
            return ms_trace_fail(trace, layer, NULL,
                                 "\"%s\" needs [sequence, width], but \"%s\" "
                                 "gives %s",
                                 layer->name,
                                 ms_layers_source(trace->settings, layer, i),
                                 ms_layers_shape(at(trace, in[i]), shape));
    const ms_tensor *bias = at(trace, in[1]), *x = at(trace, in[0]);
    const ms_tensor *memory = at(trace, in[layer->n_in - 1]);
    int64_t queries = ms_shards_sequence(trace, x->size[1]);
    int64_t keys =
        layer->n_in == 3 ? ms_shards_sequence(trace, memory->size[1]) : queries;
    if (bias->n_dims == 4 && bias->size[1] == heads_here(trace, layer) &&
        bias->size[2] == queries && bias->size[3] == keys)
        return MS_OK;
    return ms_trace_fail(trace, layer, "give it a relative_bias of its heads",
                         "\"%s\" adds to its scores what \"%s\" gives: %s",
                         layer->name,
                         ms_layers_source(trace->settings, layer, 1),
                         ms_layers_shape(bias, shape));
}

/* A reference to an input as ranks that split the layer need it, for products
 * of so many columns. */
static uint32_t enter(ms_trace *trace, uint32_t x, int64_t columns)
{
    if (is_split(trace) && !trace->kernels.keeps_parts)
        return ms_shards_enter(trace, x, columns);
    ms_trace_ref(trace, x);
    return x;
}

/* In a decoder's cross attention keys and values are made of the third input,
 * the output of the encoder. */
ms_err ms_relativeattention_forward(ms_trace *trace, const ms_layer *layer,
                                    const uint32_t *in, uint32_t *out)
{
    static const char *const roles[2] = {"proj.weight", NULL};
    MS_TRY(check(trace, layer, in));
    bool crosses = layer->n_in == 3;
    int64_t width = heads_here(trace, layer) * layer->field[HEAD_DIM].i;
    int64_t wide = at(trace, in[0])->size[2];
    uint32_t x = enter(trace, in[0], crosses ? width : 3 * width);
    uint32_t q = heads_of(trace, layer, x, "q.weight");
    uint32_t memory = crosses ? enter(trace, in[2], 2 * width) : x;
    uint32_t k = heads_of(trace, layer, memory, "k.weight");
    uint32_t v = heads_of(trace, layer, memory, "v.weight");
    const ms_scores how = {.code = MS_CODE_AUTO,
                           .sinks = MS_NONE,
                           .bias = in[1],
                           .dropout = layer->field[DROPOUT].f};
    uint32_t qkv[3] = {q, k, v};
    uint32_t y = ms_attentioncore_run(trace, &how, qkv);
    y = ms_projections_join(trace, y, width);
    *out = ms_splitproducts_product(trace, layer, roles, false, y, wide,
                                    is_split(trace) ? MS_SPLIT_ROWS
                                                    : MS_SPLIT_NOT);
    ms_trace_drop(trace, y);
    ms_trace_drop(trace, x);
    if (crosses)
        ms_trace_drop(trace, memory);
    ms_trace_drop(trace, q);
    ms_trace_drop(trace, k);
    ms_trace_drop(trace, v);
    return trace->err;
}
