/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434; variables as in
 * transformers' modeling_deepseek_v3.py).  Keys are wider than values, which
 * FlashAttention-3 and cuDNN take as they are; transformers' code pads them.
 * Ranks that split heads have the products down whole and run them on their
 * part of the sequence; what these make is gathered, not the hidden state
 * (Megatron-LM@d98e8a64, core/transformer/multi_latent_attention.py). */
#include "graphs/layers/attention/attentioncore.h"
#include "graphs/layers/attention/projections.h"
#include "graphs/layers/attention/rotation.h"
#include "graphs/layers/layers.h"
#include "graphs/layers/lora.h"
#include "graphs/layers/splitproducts.h"
#include "graphs/trace/trace.h"

enum { HEADS, Q_RANK, KV_RANK, PLAIN, TURNING, VALUE, BIAS, CAUSAL, CODE };
const ms_field ms_latentattention_fields[MS_LATENTATTENTION_FIELDS] = {
    MS_LAYERS_HEADS_FIELD("attention heads"),
    {.name = "q_rank",
     .type = MS_INT,
     .low = 0,
     .high = INT64_C(1) << 24,
     .help = "width that queries pass through; 0: one product makes them"},
    {.name = "kv_rank",
     .type = MS_INT,
     .required = true,
     .low = 1,
     .high = INT64_C(1) << 24,
     .help = "width that keys and values pass through"},
    {.name = "plain_dim",
     .type = MS_INT,
     .required = true,
     .low = 1,
     .high = INT64_C(1) << 24,
     .help = "channels of a head's queries and keys that do not rotate"},
    {.name = "rotary_dim",
     .type = MS_INT,
     .required = true,
     .low = 2,
     .high = INT64_C(1) << 24,
     .help = "channels that do; keys have them once for all heads"},
    {.name = "value_dim",
     .type = MS_INT,
     .required = true,
     .low = 1,
     .high = INT64_C(1) << 24,
     .help = "channels of a head's values"},
    {.name = "bias",
     .type = MS_BOOL,
     .help = "biases of the products down and of the output"},
    MS_LAYERS_CAUSAL_FIELD,
    MS_LAYERS_CODE_FIELD,
};

static uint32_t normed(ms_trace *trace, const ms_layer *layer, uint32_t x,
                       const char *role)
{
    if (trace->err)
        return MS_NONE;
    uint32_t weight =
        ms_layers_vector(trace, role, ms_layers_last_dim(trace, x));
    return ms_trace_rebind(
        trace, x, ms_normlayers_rms_of(trace, x, weight, layer->field[CODE].i));
}

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

/* A product into this rank's heads. */
static uint32_t product_up(ms_trace *trace, const ms_layer *layer,
                           const char *const roles[2], uint32_t x,
                           int64_t width)
{
    bool enters = is_split(trace) && !trace->kernels.keeps_parts;
    if (trace->err)
        return MS_NONE;
    uint32_t whole = enters ? ms_shards_enter(trace, x, width) : x;
    uint32_t y = ms_splitproducts_product(
        trace, layer, roles, false, whole, width,
        is_split(trace) ? MS_SPLIT_COLUMNS : MS_SPLIT_NOT);
    if (enters)
        ms_trace_drop(trace, whole);
    return y;
}

/* x.view(batch, sequence, heads, -1).transpose(1, 2); x is used up. */
static uint32_t heads_of(ms_trace *trace, uint32_t x, int64_t heads)
{
    if (trace->err)
        return MS_NONE;
    const ms_tensor *flat = ms_trace_at(trace, x);
    int64_t dims[4] = {flat->size[0], flat->size[1], heads,
                       flat->size[2] / heads};
    uint32_t view =
        ms_trace_rebind(trace, x, ms_view_reshape(trace, x, 4, dims));
    return ms_trace_rebind(trace, view, ms_view_transpose(trace, view, 1, 2));
}

/* Makes q [batch, heads, sequence, plain + turning]; its parts are q[0] and
 * q[1]. */
static void make_queries(ms_trace *trace, const ms_layer *layer, uint32_t x,
                         uint32_t parts[2])
{
    static const char *const roles[3][2] = {{"q.weight", NULL},
                                            {"q_down.weight", "q_down.bias"},
                                            {"q_up.weight", NULL}};
    const ms_value *field = layer->field;
    int64_t sizes[2] = {field[PLAIN].i, field[TURNING].i};
    int64_t width = heads_here(trace, layer) * (sizes[0] + sizes[1]);
    uint32_t q;
    if (field[Q_RANK].i == 0) {
        q = product_up(trace, layer, roles[0], x, width);
    } else {
        uint32_t down = ms_lora_product(trace, layer, roles[1], field[BIAS].b,
                                        x, field[Q_RANK].i);
        down = normed(trace, layer, down, "q_norm.weight");
        q = product_up(trace, layer, roles[2], down, width);
        ms_trace_drop(trace, down);
    }
    q = heads_of(trace, q, heads_here(trace, layer));
    ms_split_sizes(trace, q, 3, 2, sizes, parts);
    ms_trace_drop(trace, q);
}

/* Makes three tensors: the part of the keys that does not rotate, the part that
 * does (of one head, which all share), and the values. */
static void make_keys(ms_trace *trace, const ms_layer *layer, uint32_t x,
                      uint32_t parts[3])
{
    static const char *const roles[2][2] = {{"kv_down.weight", "kv_down.bias"},
                                            {"kv_up.weight", NULL}};
    const ms_value *field = layer->field;
    int64_t narrow[2] = {field[KV_RANK].i, field[TURNING].i};
    int64_t wide[2] = {field[PLAIN].i, field[VALUE].i};
    uint32_t down[2], up[2];
    uint32_t both = ms_lora_product(trace, layer, roles[0], field[BIAS].b, x,
                                    narrow[0] + narrow[1]);
    ms_split_sizes(trace, both, 2, 2, narrow, down);
    ms_trace_drop(trace, both);
    if (is_split(trace))
        down[1] =
            ms_trace_rebind(trace, down[1], ms_shards_enter(trace, down[1], 0));
    parts[1] = heads_of(trace, down[1], 1);
    uint32_t latent = normed(trace, layer, down[0], "kv_norm.weight");
    uint32_t kv = product_up(trace, layer, roles[1], latent,
                             heads_here(trace, layer) * (wide[0] + wide[1]));
    ms_trace_drop(trace, latent);
    kv = heads_of(trace, kv, heads_here(trace, layer));
    ms_split_sizes(trace, kv, 3, 2, wide, up);
    ms_trace_drop(trace, kv);
    parts[0] = up[0];
    parts[2] = up[1];
}

/* x.view(b, h, s, d // 2, 2).transpose(4, 3).reshape(b, h, s, d), as in
 * apply_rotary_pos_emb_interleave; x is used up. */
static uint32_t in_pairs(ms_trace *trace, uint32_t x)
{
    if (trace->err)
        return MS_NONE;
    ms_tensor flat = *ms_trace_at(trace, x);
    int64_t dims[5] = {flat.size[0], flat.size[1], flat.size[2],
                       flat.size[3] / 2, 2};
    x = ms_trace_rebind(trace, x, ms_view_reshape(trace, x, 5, dims));
    x = ms_trace_rebind(trace, x, ms_view_transpose(trace, x, 3, 4));
    return ms_trace_rebind(trace, x, ms_view_reshape(trace, x, 4, flat.size));
}

/* cat((plain, turned), dim=-1); both are used up. */
static uint32_t joined(ms_trace *trace, uint32_t plain, uint32_t turned)
{
    uint32_t parts[2] = {plain, turned};
    uint32_t y = ms_view_cat(trace, parts, 2, 3);
    ms_trace_drop(trace, plain);
    ms_trace_drop(trace, turned);
    return y;
}

/* The rotating part of the keys has one head: it is rotated before it is
 * expanded to all heads, so the expanded view copies nothing until cat. */
ms_err ms_latentattention_forward(ms_trace *trace, const ms_layer *layer,
                                  const uint32_t *in, uint32_t *out)
{
    static const char *const roles[2] = {"proj.weight", "proj.bias"};
    const ms_value *field = layer->field;
    uint32_t queries[2], keys[3], turned[2];
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    ms_tensor x = *ms_trace_at(trace, in[0]);
    if (x.n_dims != 3)
        return ms_trace_fail(trace, layer, "give the model a sequence input",
                             "\"%s\" needs [batch, sequence, width]",
                             layer->name);
    make_queries(trace, layer, in[0], queries);
    make_keys(trace, layer, in[0], keys);
    turned[0] = queries[1];
    turned[1] = keys[1];
    for (int i = 0;
         i < 2 && ms_layers_is_apart(trace->kernels.rotary, field[CODE].i) &&
         field[CODE].i != MS_CODE_AUTO;
         i++)
        turned[i] = in_pairs(trace, turned[i]);
    ms_rotation_run(trace, field[CODE].i, field[TURNING].i, turned, 2);
    uint32_t q = joined(trace, queries[0], turned[0]);
    uint32_t wide =
        ms_view_expand(trace, turned[1], 1, heads_here(trace, layer));
    ms_trace_drop(trace, turned[1]);
    uint32_t k = joined(trace, keys[0], wide);
    const ms_scores how = {.code = field[CODE].i,
                           .causal = field[CAUSAL].b,
                           .rotates = true,
                           .always_fuses = true,
                           .sinks = MS_NONE,
                           .bias = MS_NONE};
    uint32_t qkv[3] = {q, k, keys[2]};
    uint32_t y = ms_attentioncore_run(trace, &how, qkv);
    y = ms_projections_join(trace, y,
                            heads_here(trace, layer) * field[VALUE].i);
    *out = ms_splitproducts_product(
        trace, layer, roles, field[BIAS].b, y, x.size[2],
        is_split(trace) ? MS_SPLIT_ROWS : MS_SPLIT_NOT);
    ms_trace_drop(trace, y);
    ms_trace_drop(trace, q);
    ms_trace_drop(trace, k);
    ms_trace_drop(trace, keys[2]);
    return trace->err;
}
