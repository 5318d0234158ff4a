/* SPDX-License-Identifier: GPL-3.0-or-later */
/* torch.nn.MultiheadAttention(batch_first=True) of one input to itself, with
 * need_weights=False, as its Python code has it: torch/nn/functional.py,
 * multi_head_attention_forward, of 1.13 and of 2.x. */
#include "graphs/layers/attention/sdpa.h"
#include "graphs/layers/layers.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

enum { HEADS, DROPOUT, BIAS };
const ms_field ms_multiheadattention_fields[MS_MULTIHEADATTENTION_FIELDS] = {
    MS_LAYERS_HEADS_FIELD("attention heads; must divide the width"),
    MS_LAYERS_WEIGHTS_DROPOUT_FIELD,
    MS_LAYERS_BIASES_FIELD,
};

/* The sizes of x [batch, sequence, width] and of its heads. */
typedef struct sizes {
    int64_t batch, sequence, width, heads, dim;
} sizes;

static uint32_t project(ms_trace *trace, const ms_layer *layer, uint32_t x,
                        const char *weight_role, const char *bias_role,
                        int64_t out)
{
    if (trace->err)
        return MS_NONE;
    int64_t dims[2] = {out, ms_layers_last_dim(trace, x)};
    uint32_t weight = ms_trace_parameter(trace, weight_role, 2, dims);
    uint32_t bias = layer->field[BIAS].b
                        ? ms_layers_vector(trace, bias_role, out)
                        : MS_NONE;
    return ms_matmul_linear(trace, x, weight, bias);
}

/* Views [sequence, batch, width] as [batch * heads, sequence, dim]. */
static uint32_t as_heads(ms_trace *trace, uint32_t x, const sizes *n)
{
    int64_t dims[3] = {n->sequence, n->batch * n->heads, n->dim};
    uint32_t whole = ms_view_contiguous(trace, x);
    uint32_t view = ms_view_reshape(trace, whole, 3, dims);
    uint32_t y = ms_view_transpose(trace, view, 0, 1);
    ms_trace_drop(trace, whole);
    ms_trace_drop(trace, view);
    return y;
}

/* The Python variables q, k and v live until the function returns, and so do
 * the scaled q and the weights. */
static uint32_t attend(ms_trace *trace, const ms_layer *layer,
                       const uint32_t *qkv)
{
    uint32_t q = ms_pointwise_div_scalar(trace, qkv[0]);
    uint32_t keys = ms_view_transpose(trace, qkv[1], 1, 2);
    trace->op_flags |= MS_OP_CORE;
    uint32_t a = ms_productlayers_bmm(trace, q, keys);
    ms_trace_drop(trace, keys);
    a = ms_trace_rebind(trace, a, ms_norm_softmax(trace, a));
    a = ms_trace_rebind(
        trace, a, ms_pointwise_dropout(trace, a, layer->field[DROPOUT].f));
    trace->op_flags &= (uint8_t)~MS_OP_CORE;
    uint32_t y = ms_productlayers_bmm(trace, a, qkv[2]);
    ms_trace_drop(trace, q);
    ms_trace_drop(trace, a);
    return y;
}

/* Attention by single ops, from x [sequence, batch, width] to [sequence *
 * batch, width]. */
static uint32_t by_ops(ms_trace *trace, const ms_layer *layer, uint32_t x,
                       const sizes *n, uint32_t *qkv)
{
    int64_t parts[3] = {n->width, n->width, n->width};
    int64_t flat[2] = {n->sequence * n->batch, n->width};
    uint32_t packed = project(trace, layer, x, "in_proj.weight", "in_proj.bias",
                              3 * n->width);
    ms_split_sizes(trace, packed, 2, 3, parts, qkv);
    ms_trace_drop(trace, packed);
    for (int i = 0; i < 3 && !trace->err; i++)
        qkv[i] = ms_trace_rebind(trace, qkv[i], as_heads(trace, qkv[i], n));
    if (trace->err)
        return MS_NONE;
    uint32_t y = attend(trace, layer, qkv);
    y = ms_trace_rebind(trace, y, ms_view_transpose(trace, y, 0, 1));
    y = ms_trace_rebind(trace, y, ms_view_contiguous(trace, y));
    return ms_trace_rebind(trace, y, ms_view_reshape(trace, y, 2, flat));
}

/* proj.unflatten(-1, (3, E)).unsqueeze(0).transpose(0, -2).squeeze(-2)
 * .contiguous(), then rows 0, 1 and 2 as [batch, heads, sequence, dim]. */
static void unpack(ms_trace *trace, uint32_t packed, const sizes *n,
                   uint32_t *qkv)
{
    static const uint32_t turn[4] = {2, 0, 1, 3}, back[4] = {1, 2, 0, 3};
    int64_t apart[4] = {n->sequence, n->batch, 3, n->width};
    int64_t heads[4] = {n->sequence, n->batch, n->heads, n->dim};
    uint32_t whole = ms_view_reshape(trace, packed, 4, apart);
    whole = ms_trace_rebind(trace, whole, ms_view_permute(trace, whole, turn));
    whole = ms_trace_rebind(trace, whole, ms_view_contiguous(trace, whole));
    for (int i = 0; i < 3; i++) {
        qkv[i] = ms_view_select(trace, whole, 0);
        qkv[i] = ms_trace_rebind(trace, qkv[i],
                                 ms_view_reshape(trace, qkv[i], 4, heads));
        qkv[i] = ms_trace_rebind(trace, qkv[i],
                                 ms_view_permute(trace, qkv[i], back));
    }
    ms_trace_drop(trace, whole);
}

/* Attention by scaled_dot_product_attention, as PyTorch 2 has it. */
static uint32_t by_kernel(ms_trace *trace, const ms_layer *layer, uint32_t x,
                          const sizes *n, uint32_t *qkv)
{
    static const uint32_t order[4] = {2, 0, 1, 3};
    int64_t flat[2] = {n->sequence * n->batch, n->width};
    uint32_t packed = project(trace, layer, x, "in_proj.weight", "in_proj.bias",
                              3 * n->width);
    unpack(trace, packed, n, qkv);
    ms_trace_drop(trace, packed);
    if (trace->err)
        return MS_NONE;
    ms_attended all = {.dropout = layer->field[DROPOUT].f};
    uint32_t y = ms_sdpa_run(trace, trace->kernels.attention, qkv, all);
    y = ms_trace_rebind(trace, y, ms_view_permute(trace, y, order));
    y = ms_trace_rebind(trace, y, ms_view_contiguous(trace, y));
    return ms_trace_rebind(trace, y, ms_view_reshape(trace, y, 2, flat));
}

static ms_err find_sizes(ms_trace *trace, const ms_layer *layer, uint32_t input,
                         sizes *n)
{
    char shape[MS_LAYERS_SHAPE];
    int64_t heads = layer->field[HEADS].i;
    MS_TRY(ms_layers_need_float(trace, layer, input));
    const ms_tensor *x = ms_trace_at(trace, input);
    if (x->n_dims != 3 || x->size[2] % heads != 0)
        return ms_trace_fail(
            trace, layer, "choose heads that divide the width",
            "\"%s\" needs [sequence, width] and %lld heads that divide the "
            "width, but \"%s\" gives %s",
            layer->name, (long long)heads,
            ms_layers_source(trace->settings, layer, 0),
            ms_layers_shape(x, shape));
    *n = (sizes){x->size[0], x->size[1], x->size[2], heads, x->size[2] / heads};
    return MS_OK;
}

ms_err ms_multiheadattention_forward(ms_trace *trace, const ms_layer *layer,
                                     const uint32_t *in, uint32_t *out)
{
    const ms_attention_kernel *kernel = trace->kernels.attention;
    bool eager = kernel->apart || trace->settings->framework < kernel->since;
    uint32_t qkv[3] = {MS_NONE, MS_NONE, MS_NONE};
    sizes n = {0};
    MS_TRY(find_sizes(trace, layer, in[0], &n));
    int64_t whole[3] = {n.sequence, n.batch, n.width};
    uint32_t x = ms_view_transpose(trace, in[0], 0, 1);
    uint32_t y = eager ? by_ops(trace, layer, x, &n, qkv)
                       : by_kernel(trace, layer, x, &n, qkv);
    y = ms_trace_rebind(
        trace, y,
        project(trace, layer, y, "out_proj.weight", "out_proj.bias", n.width));
    y = ms_trace_rebind(trace, y, ms_view_reshape(trace, y, 3, whole));
    *out = ms_view_transpose(trace, y, 0, 1);
    ms_trace_drop(trace, y);
    ms_trace_drop(trace, x);
    ms_split_drop(trace, 3, qkv);
    return trace->err;
}
