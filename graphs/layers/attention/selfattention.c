/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The layer "attention", with the kernels of any set. */
#include "graphs/layers/attention/attentioncore.h"
#include "graphs/layers/attention/projections.h"
#include "graphs/layers/attention/rotation.h"
#include "graphs/layers/layers.h"
#include "graphs/layers/splitproducts.h"
#include "graphs/parallel/contextops.h"
#include "graphs/trace/trace.h"

#include <string.h>

static const ms_tensor *at(ms_trace *trace, uint32_t tensor)
{
    return ms_trace_at(trace, tensor);
}

static int64_t last_dim(const ms_tensor *tensor)
{
    return tensor->size[tensor->n_dims - 1];
}

enum {
    ATTENTION_HEADS,
    ATTENTION_CAUSAL,
    ATTENTION_DROPOUT,
    ATTENTION_BIAS,
    ATTENTION_KV_HEADS,
    ATTENTION_HEAD_DIM,
    ATTENTION_ROTARY,
    ATTENTION_FUSED_QKV,
    ATTENTION_COMPLEX,
    ATTENTION_OUT_BIAS,
    ATTENTION_QK_NORM,
    ATTENTION_ROTARY_DIM,
    ATTENTION_ALIBI,
    ATTENTION_SOFTCAP,
    ATTENTION_SINKS,
    ATTENTION_WINDOW,
    ATTENTION_PACKED,
    ATTENTION_REPEAT_KV,
    ATTENTION_CODE
};
enum { OUT_BIAS_SAME, OUT_BIAS_YES, OUT_BIAS_NO };
enum { QK_NORM_NONE, QK_NORM_HEAD, QK_NORM_WIDTH };
const ms_field ms_selfattention_fields[MS_SELFATTENTION_FIELDS] = {
    MS_LAYERS_HEADS_FIELD("attention heads; must divide the width"),
    MS_LAYERS_CAUSAL_FIELD,
    MS_LAYERS_WEIGHTS_DROPOUT_FIELD,
    MS_LAYERS_BIASES_FIELD,
    {.name = "kv_heads",
     .type = MS_INT,
     .low = 0,
     .high = INT64_C(1) << 24,
     .help = "heads of keys and values; 0: as heads"},
    {.name = "head_dim",
     .type = MS_INT,
     .low = 0,
     .high = INT64_C(1) << 24,
     .help = "channels of a head; 0: width / heads"},
    {.name = "rotary",
     .type = MS_BOOL,
     .help = "rotate queries and keys by their positions"},
    {.name = "fused_qkv",
     .type = MS_BOOL,
     .fallback.b = true,
     .help = "one projection makes q, k and v (GPT-2), or one each (LLaMA)"},
    {.name = "complex",
     .type = MS_BOOL,
     .help = "rotate as complex numbers, in fp32, and repeat keys and values "
             "for their queries, as Meta's LLaMA code"},
    {.name = "out_bias",
     .type = MS_WORD,
     .words = "same|yes|no",
     .help = "bias of the output projection; same: as \"bias\""},
    {.name = "qk_norm",
     .type = MS_WORD,
     .words = "none|head|width",
     .help = "RMS norm of queries and keys, by heads or over all (Qwen3, "
             "OLMo 2)"},
    {.name = "rotary_dim",
     .type = MS_INT,
     .low = 0,
     .high = INT64_C(1) << 24,
     .help = "channels of a head that rotate; 0: all"},
    {.name = "alibi",
     .type = MS_BOOL,
     .help = "scores fall with the distance (Press et al. 2022)"},
    {.name = "softcap",
     .type = MS_BOOL,
     .help = "scores pass through a tanh (Gemma 2)"},
    {.name = "sinks",
     .type = MS_BOOL,
     .help = "a learned score beside the keys, per head (gpt-oss)"},
    {.name = "window",
     .type = MS_INT,
     .low = 0,
     .high = INT64_C(1) << 31,
     .help = "keys that a query sees; 0: all before it"},
    {.name = "packed",
     .type = MS_BOOL,
     .help = "samples share a sequence: with \"complex\" each token's rotation "
             "is looked up by its position"},
    {.name = "repeat_kv",
     .type = MS_BOOL,
     .help = "repeat keys and values for their queries before any kernel; "
             "\"complex\" does"},
    MS_LAYERS_CODE_FIELD,
};

static ms_scores scores_of(const ms_layer *layer, uint32_t sinks)
{
    const ms_value *field = layer->field;
    return (ms_scores){.code = field[ATTENTION_CODE].i,
                       .causal = field[ATTENTION_CAUSAL].b,
                       .rotates = field[ATTENTION_ROTARY].b,
                       .alibi = field[ATTENTION_ALIBI].b,
                       .softcap = field[ATTENTION_SOFTCAP].b,
                       .window = field[ATTENTION_WINDOW].i,
                       .repeats = field[ATTENTION_COMPLEX].b ||
                                  field[ATTENTION_REPEAT_KV].b,
                       .bias = MS_NONE,
                       .sinks = sinks,
                       .dropout = field[ATTENTION_DROPOUT].f};
}

/* ---- queries, keys, values ----------------------------------------------- */

/* How ranks split the products that make them. */
static ms_split columns(const ms_trace *trace)
{
    return ms_shards_split(trace) == MS_SPLIT_HEADS ? MS_SPLIT_COLUMNS
                                                    : MS_SPLIT_NOT;
}

/* c_attn(x).split(...): the code of GPT-2 turns k, then q, then v into heads.
 */
static void project_fused(ms_trace *trace, const ms_layer *layer,
                          const ms_attention_sizes *n, uint32_t x,
                          uint32_t *qkv)
{
    static const char *const roles[2] = {"qkv.weight", "qkv.bias"};
    static const int order[3] = {1, 0, 2};
    int64_t heads[3] = {n->heads, n->kv_heads, n->kv_heads}, parts[3];
    for (int i = 0; i < 3; i++)
        parts[i] = heads[i] * n->dim;
    uint32_t fused = ms_splitproducts_product(
        trace, layer, roles, layer->field[ATTENTION_BIAS].b, x,
        parts[0] + parts[1] + parts[2], columns(trace));
    ms_split_sizes(trace, fused, 2, 3, parts, qkv);
    ms_trace_drop(trace, fused);
    for (int i = 0; i < 3 && !trace->err; i++) {
        uint32_t *part = &qkv[order[i]];
        *part = ms_trace_rebind(
            trace, *part, ms_projections_heads(trace, *part, heads[order[i]]));
    }
}

/* Of a second input one product makes keys and values. */
static void project_crossed(ms_trace *trace, const ms_layer *layer,
                            const ms_attention_sizes *n, const uint32_t *in,
                            uint32_t *qkv)
{
    static const char *const roles[2][2] = {{"q.weight", "q.bias"},
                                            {"kv.weight", "kv.bias"}};
    int64_t parts[2] = {n->kv_heads * n->dim, n->kv_heads * n->dim};
    int64_t widths[2] = {n->heads * n->dim, parts[0] + parts[1]};
    uint32_t made[2];
    for (uint32_t i = 0; i < 2; i++)
        made[i] = ms_splitproducts_product(trace, layer, roles[i],
                                           layer->field[ATTENTION_BIAS].b,
                                           in[i], widths[i], columns(trace));
    qkv[0] = made[0];
    ms_split_sizes(trace, made[1], 2, 2, parts, qkv + 1);
    ms_trace_drop(trace, made[1]);
    for (int i = 0; i < 3 && !trace->err; i++)
        qkv[i] = ms_trace_rebind(
            trace, qkv[i],
            ms_projections_heads(trace, qkv[i],
                                 i == 0 ? n->heads : n->kv_heads));
}

/* norm(x.view(batch, sequence, heads, dim)), or norm(x) over all heads
 * together. */
static uint32_t norm_heads(ms_trace *trace, const ms_layer *layer,
                           const ms_attention_sizes *n, uint32_t x,
                           const char *role)
{
    bool by_heads = layer->field[ATTENTION_QK_NORM].i == QK_NORM_HEAD;
    int64_t code = layer->field[ATTENTION_CODE].i;
    if (trace->err)
        return MS_NONE;
    const ms_tensor *flat = at(trace, x);
    int64_t width = flat->size[2];
    int64_t dims[4] = {flat->size[0], flat->size[1], width / n->dim, n->dim};
    int64_t joined[3] = {dims[0], dims[1], width};
    uint32_t weight =
        ms_trace_parameter(trace, role, 1, by_heads ? &n->dim : &width);
    if (!by_heads)
        return ms_normlayers_rms_of(trace, x, weight, code);
    uint32_t view = ms_view_reshape(trace, x, 4, dims);
    uint32_t normed = ms_normlayers_rms_of(trace, view, weight, code);
    ms_trace_drop(trace, view);
    uint32_t y = ms_view_reshape(trace, normed, 3, joined);
    ms_trace_drop(trace, normed);
    return y;
}

static void project_apart(ms_trace *trace, const ms_layer *layer,
                          const ms_attention_sizes *n, const uint32_t *in,
                          uint32_t *qkv)
{
    static const char *const roles[3][2] = {
        {"q.weight", "q.bias"}, {"k.weight", "k.bias"}, {"v.weight", "v.bias"}};
    static const char *const norms[2] = {"q_norm.weight", "k_norm.weight"};
    bool normed = layer->field[ATTENTION_QK_NORM].i != QK_NORM_NONE;
    for (int i = 0; i < 3; i++) {
        int64_t heads = i == 0 ? n->heads : n->kv_heads;
        uint32_t y = ms_splitproducts_product(
            trace, layer, roles[i], layer->field[ATTENTION_BIAS].b,
            in[i == 0 ? 0 : layer->n_in - 1], heads * n->dim, columns(trace));
        if (normed && i < 2)
            y = ms_trace_rebind(trace, y,
                                norm_heads(trace, layer, n, y, norms[i]));
        qkv[i] =
            ms_trace_rebind(trace, y, ms_projections_heads(trace, y, heads));
    }
}

/* ---- the layer ----------------------------------------------------------- */

/* A fault where a field would have no effect beside another. */
static ms_err check_fields(ms_trace *trace, const ms_layer *layer)
{
    const ms_value *field = layer->field;
    if (field[ATTENTION_QK_NORM].i != QK_NORM_NONE &&
        field[ATTENTION_FUSED_QKV].b)
        return ms_trace_fail(trace, layer, "set \"fused_qkv\" to false",
                             "attention \"%s\": \"qk_norm\" needs "
                             "projections of their own for q and k",
                             layer->name);
    if (field[ATTENTION_ROTARY_DIM].i > 0 && field[ATTENTION_COMPLEX].b)
        return ms_trace_fail(trace, layer, "set \"complex\" to false",
                             "attention \"%s\": all channels rotate as "
                             "complex numbers, so \"rotary_dim\" has no place",
                             layer->name);
    if (field[ATTENTION_PACKED].b &&
        !(field[ATTENTION_ROTARY].b && field[ATTENTION_COMPLEX].b))
        return ms_trace_fail(trace, layer,
                             "set \"rotary\" and \"complex\" too, or leave "
                             "\"packed\" out",
                             "attention \"%s\": \"packed\" changes nothing "
                             "without a rotation by complex numbers",
                             layer->name);
    return MS_OK;
}

/* A second input has no order towards the first. */
static ms_err check_crossed(ms_trace *trace, const ms_layer *layer,
                            uint32_t memory)
{
    static const uint8_t ordered[] = {ATTENTION_CAUSAL, ATTENTION_ROTARY,
                                      ATTENTION_COMPLEX, ATTENTION_ALIBI,
                                      ATTENTION_SINKS};
    MS_TRY(ms_layers_need_float(trace, layer, memory));
    for (size_t i = 0; i < sizeof ordered; i++)
        if (layer->field[ordered[i]].b)
            return ms_trace_fail(
                trace, layer, "set it to false",
                "attention \"%s\" of two inputs knows no \"%s\"", layer->name,
                ms_selfattention_fields[ordered[i]].name);
    if (layer->field[ATTENTION_WINDOW].i > 0 || trace->context)
        return ms_trace_fail(
            trace, layer, "leave it out for this model",
            "attention \"%s\" of two inputs knows no %s", layer->name,
            trace->context ? "divided sequence (context)" : "\"window\"");
    if (at(trace, memory)->n_dims != 3)
        return ms_trace_fail(trace, layer, "give it two sequences",
                             "attention \"%s\" needs [batch, sequence, width]",
                             layer->name);
    return MS_OK;
}

/* The sizes of the layer.  A field of 0 stands for its default, and a default
 * is computed from those before it: dim, then turning, then kv_heads. */
static ms_err find_sizes(ms_trace *trace, const ms_layer *layer,
                         const uint32_t *in, ms_attention_sizes *n)
{
    const ms_value *field = layer->field;
    MS_TRY(check_fields(trace, layer));
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    if (layer->n_in > 1)
        MS_TRY(check_crossed(trace, layer, in[1]));
    const ms_tensor *x = at(trace, in[0]);
    *n = (ms_attention_sizes){field[ATTENTION_HEADS].i,
                              field[ATTENTION_KV_HEADS].i,
                              field[ATTENTION_HEAD_DIM].i, last_dim(x),
                              field[ATTENTION_ROTARY_DIM].i};
    if (x->n_dims != 3)
        return ms_trace_fail(trace, layer, "give the model a sequence input",
                             "attention \"%s\" needs [batch, sequence, width]",
                             layer->name);
    if (n->dim == 0 && n->width % n->heads != 0)
        return ms_trace_fail(
            trace, layer, "choose heads that divide the width",
            "attention \"%s\": a width of %lld does not divide into %lld "
            "heads",
            layer->name, (long long)n->width, (long long)n->heads);
    if (n->dim == 0)
        n->dim = n->width / n->heads;
    if (n->turning == 0)
        n->turning = n->dim;
    if (n->kv_heads == 0)
        n->kv_heads = n->heads;
    if (n->turning > n->dim)
        return ms_trace_fail(
            trace, layer, "choose a smaller rotary_dim",
            "attention \"%s\": %lld of %lld channels of a head cannot rotate",
            layer->name, (long long)n->turning, (long long)n->dim);
    if (field[ATTENTION_ROTARY].b && n->turning % 2 != 0)
        return ms_trace_fail(
            trace, layer, "choose an even head_dim or rotary_dim",
            "attention \"%s\": channels rotate in pairs, %lld do not",
            layer->name, (long long)n->turning);
    if (n->heads % n->kv_heads != 0)
        return ms_trace_fail(
            trace, layer, "choose kv_heads that divide heads",
            "attention \"%s\": %lld heads cannot share %lld kv_heads evenly",
            layer->name, (long long)n->heads, (long long)n->kv_heads);
    return MS_OK;
}

/* Sinks are an operand of a kernel: the parameter exists, and the kernel makes
 * its gradient. */
static uint32_t add_sinks(ms_trace *trace, const ms_layer *layer, int64_t heads)
{
    if (!layer->field[ATTENTION_SINKS].b)
        return MS_NONE;
    uint32_t sinks = ms_trace_parameter(trace, "sinks", 1, &heads);
    const ms_scores how = scores_of(layer, sinks);
    bool operand =
        trace->kernels.fuses_softmax ||
        (!trace->kernels.is_plain && ms_scores_has_kernel(trace, &how));
    if (!trace->err && trace->settings->train && operand)
        ms_raw_states(trace, sinks);
    return sinks;
}

static bool is_biased(const ms_layer *layer)
{
    int64_t own = layer->field[ATTENTION_OUT_BIAS].i;
    return own == OUT_BIAS_SAME ? layer->field[ATTENTION_BIAS].b
                                : own == OUT_BIAS_YES;
}

/* What ranks do inside of attention knows causal and full attention only. */
static ms_err check_joint(ms_trace *trace, const ms_layer *layer)
{
    const ms_value *field = layer->field;
    if (trace->kernels.is_plain)
        return ms_trace_fail(
            trace, layer, "take mode=a2a, or --kernels flash",
            "attention \"%s\": ring and allgather need a fused "
            "kernel (context)",
            layer->name);
    if (field[ATTENTION_ALIBI].b || field[ATTENTION_SOFTCAP].b ||
        field[ATTENTION_SINKS].b || field[ATTENTION_WINDOW].i > 0)
        return ms_trace_fail(
            trace, layer, "take mode=a2a",
            "attention \"%s\": ring and allgather know no slopes, "
            "caps, sinks or windows (context)",
            layer->name);
    return MS_OK;
}

/* Where ranks divide the sequence, over all of it. */
static uint32_t attend(ms_trace *trace, const ms_scores *how, uint32_t *qkv)
{
    if (!trace->context)
        return ms_attentioncore_run(trace, how, qkv);
    if (ms_contextops_is_joint(trace))
        return ms_contextops_joint(trace, qkv[0], qkv[1], qkv[2], how->causal);
    for (uint32_t i = 0; i < 3; i++)
        qkv[i] = ms_contextops_forth(trace, qkv[i], i > 0);
    if (trace->err)
        return MS_NONE;
    ms_scores part = *how;
    if (how->sinks != MS_NONE) /* of this rank's heads */
        part.sinks =
            ms_view_slice(trace, how->sinks, 0, at(trace, qkv[0])->size[1]);
    uint32_t y = ms_attentioncore_run(trace, &part, qkv);
    if (part.sinks != MS_NONE)
        ms_trace_drop(trace, part.sinks);
    return ms_contextops_back(trace, y);
}

static void project(ms_trace *trace, const ms_layer *layer,
                    const ms_attention_sizes *n, const uint32_t *in,
                    uint32_t *qkv)
{
    if (!layer->field[ATTENTION_FUSED_QKV].b)
        project_apart(trace, layer, n, in, qkv);
    else if (layer->n_in > 1)
        project_crossed(trace, layer, n, in, qkv);
    else
        project_fused(trace, layer, n, in[0], qkv);
}

/* Of the products, without a bias, that read input i. */
static int64_t columns_of(const ms_layer *layer, const ms_attention_sizes *n,
                          uint32_t i)
{
    int64_t queries = n->heads * n->dim, others = 2 * n->kv_heads * n->dim;
    if (layer->field[ATTENTION_BIAS].b)
        return 0;
    if (layer->n_in == 1)
        return queries + others;
    return i == 0 ? queries : others;
}

/* The inputs as ranks that split the layer by heads need them: references. */
static void enter(ms_trace *trace, const ms_layer *layer,
                  const ms_attention_sizes *n, const uint32_t *in,
                  uint32_t *entered)
{
    bool split =
        ms_shards_split(trace) == MS_SPLIT_HEADS && !trace->kernels.keeps_parts;
    for (uint32_t i = 0; i < layer->n_in; i++) {
        if (!split)
            ms_trace_ref(trace, in[i]);
        entered[i] =
            split ? ms_shards_enter(trace, in[i], columns_of(layer, n, i))
                  : in[i];
    }
}

/* The Python variables q, k and v live to the end of the forward; the scores'
 * variables end in the core. */
ms_err ms_selfattention_forward(ms_trace *trace, const ms_layer *layer,
                                const uint32_t *in, uint32_t *out)
{
    static const char *const roles[2] = {"proj.weight", "proj.bias"};
    uint32_t qkv[3], entered[2];
    ms_attention_sizes n;
    MS_TRY(find_sizes(trace, layer, in, &n));
    bool split = ms_shards_split(trace) == MS_SPLIT_HEADS;
    if (split) {
        n.heads = ms_shards_part(trace, n.heads);
        n.kv_heads = ms_shards_part(trace, n.kv_heads);
    }
    if (ms_contextops_is_joint(trace))
        MS_TRY(check_joint(trace, layer));
    if (trace->kernels.hooks->attention)
        return trace->kernels.hooks->attention(trace, layer, &n, in, out);
    enter(trace, layer, &n, in, entered);
    project(trace, layer, &n, entered, qkv);
    if (layer->field[ATTENTION_ROTARY].b && layer->field[ATTENTION_COMPLEX].b &&
        ms_kernels_apart(trace->kernels.rotary, true))
        ms_rotation_complex(trace, n.dim, layer->field[ATTENTION_PACKED].b,
                            qkv);
    else if (layer->field[ATTENTION_ROTARY].b)
        ms_rotation_run(trace, layer->field[ATTENTION_CODE].i, n.turning, qkv,
                        2);
    const ms_scores how = scores_of(layer, add_sinks(trace, layer, n.heads));
    uint32_t y = attend(trace, &how, qkv);
    y = trace->err ? MS_NONE : ms_projections_join(trace, y, n.heads * n.dim);
    *out =
        ms_splitproducts_product(trace, layer, roles, is_biased(layer), y,
                                 n.width, split ? MS_SPLIT_ROWS : MS_SPLIT_NOT);
    ms_trace_drop(trace, y);
    ms_split_drop(trace, layer->n_in, entered);
    for (int i = 0; i < 3 && !trace->err; i++)
        ms_trace_drop(trace, qkv[i]);
    return trace->err;
}
