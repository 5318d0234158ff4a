/* SPDX-License-Identifier: GPL-3.0-or-later */
/* SelfAttention of Megatron-Core (core/transformer/attention.py) with the
 * kernels of Transformer Engine (dot_product_attention/backends.py) or its own
 * (dot_product_attention.py).  Tensors are [batch, sequence, ...]; in Megatron
 * the sequence comes first, so that heads of a batch are rows of a product
 * without a copy. */
#include "graphs/kernels/mcore/mcore.h"
#include "graphs/layers/attention/projections.h"
#include "graphs/layers/attention/sharedtables.h"
#include "graphs/layers/layers.h"
#include "graphs/layers/splitproducts.h"
#include "graphs/layertypes.h"
#include "graphs/parallel/contextops.h"
#include "graphs/parallel/memorybuffer.h"
#include "graphs/parallel/tensorops.h"
#include "graphs/trace/opend.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

#include <assert.h>
#include <string.h>

static const ms_tensor *at(const ms_trace *trace, uint32_t tensor)
{
    return ms_trace_at(trace, tensor);
}

/* A field that the layer's type has. */
static ms_value field_of(const ms_layer *layer, const char *name)
{
    const ms_value *field = ms_layertypes_field(layer, name);
    assert(field != NULL);
    return *field;
}

/* Is the field's word that one? */
static bool is_word(const ms_layer *layer, const char *name, const char *word)
{
    const ms_layer_kind *kind = layer->kind;
    for (uint32_t i = 0; i < kind->n_fields; i++) {
        const char *words = kind->fields[i].words;
        size_t length = strlen(word);
        if (strcmp(kind->fields[i].name, name) != 0)
            continue;
        for (int64_t w = 0; w < layer->field[i].i; w++)
            words = strchr(words, '|') + 1;
        return strncmp(words, word, length) == 0 &&
               (words[length] == '|' || words[length] == '\0');
    }
    return false;
}

/* ---- what Megatron has not ----------------------------------------------- */

static ms_err refuse(ms_trace *trace, const ms_layer *layer, const char *what)
{
    return ms_trace_fail(trace, layer, "take other kernels, such as flash",
                         "attention \"%s\": Megatron's kernels know no %s",
                         layer->name, what);
}

static ms_err check(ms_trace *trace, const ms_layer *layer)
{
    if (field_of(layer, "alibi").b)
        return refuse(trace, layer, "\"alibi\"");
    if (field_of(layer, "softcap").b)
        return refuse(trace, layer, "\"softcap\"");
    if (field_of(layer, "complex").b)
        return refuse(trace, layer, "\"complex\" rotation");
    if (is_word(layer, "qk_norm", "width"))
        return refuse(trace, layer, "\"qk_norm\" over all heads");
    if (layer->n_in > 1 && field_of(layer, "kv_heads").i > 0 &&
        field_of(layer, "kv_heads").i != field_of(layer, "heads").i)
        return refuse(trace, layer, "\"kv_heads\" of a second input");
    if (trace->context &&
        ms_mcoresettings_backend(trace->settings) == MS_MCORE_UNFUSED)
        return ms_trace_fail(trace, layer,
                             "--set megatron.attention=fused, or flash",
                             "attention \"%s\": ranks divide no sequence of "
                             "unfused attention (context)",
                             layer->name);
    return MS_OK;
}

/* ---- queries, keys, values ----------------------------------------------- */

/* The ranks that have parts of one group of heads, where there are more ranks
 * than groups; else 1. */
static int64_t ranks_of_a_group(const ms_trace *trace, const ms_layer *layer)
{
    int64_t groups = field_of(layer, "kv_heads").i;
    if (ms_shards_split(trace) != MS_SPLIT_HEADS || groups == 0)
        return 1;
    int64_t ranks = trace->shards->ranks.ranks;
    return ranks > groups ? ranks / groups : 1;
}

/* attention.py from core 0.16, get_query_key_value_tensors: the product's
 * columns are divided evenly, whatever head they are of; all of them are
 * gathered, and of the rank's group its queries are taken.  With 8 heads in 2
 * groups, 4 ranks have 2 q and a k or a v of dim columns each, and the gathered
 * is q q q q k v | q q q q k v. */
static void project_gathered(ms_trace *trace, const ms_layer *layer,
                             const ms_attention_sizes *n, uint32_t x,
                             uint32_t *qkv)
{
    static const char *const roles[2] = {"qkv.weight", "qkv.bias"};
    int64_t ranks = trace->shards->ranks.ranks;
    int64_t groups = field_of(layer, "kv_heads").i;
    int64_t queries = n->heads * ranks / groups;
    int64_t parts[3] = {queries * n->dim, n->dim, n->dim};
    uint32_t mixed = ms_splitproducts_product(
        trace, layer, roles, field_of(layer, "bias").b, x,
        groups * (queries + 2) * n->dim / ranks, MS_SPLIT_COLUMNS);
    mixed =
        ms_trace_rebind(trace, mixed, ms_tensorops_columns(trace, mixed, true));
    if (trace->err)
        return;
    mixed = ms_trace_rebind(
        trace, mixed, ms_view_slice(trace, mixed, 2, (queries + 2) * n->dim));
    ms_split_sizes(trace, mixed, 2, 3, parts, qkv);
    ms_trace_drop(trace, mixed);
    for (uint32_t i = 0; i < 3 && !trace->err; i++) {
        int64_t heads[4] = {at(trace, qkv[i])->size[0],
                            at(trace, qkv[i])->size[1], i == 0 ? queries : 1,
                            n->dim};
        qkv[i] = ms_trace_rebind(trace, qkv[i],
                                 ms_view_reshape(trace, qkv[i], 4, heads));
    }
    qkv[0] = ms_trace_rebind(trace, qkv[0],
                             ms_view_slice(trace, qkv[0], 2, n->heads));
}

/* [batch, sequence, groups, (queries + 2) dim] split in three, of which the
 * first is then seen as heads: a copy where groups lie apart. */
static void project(ms_trace *trace, const ms_layer *layer,
                    const ms_attention_sizes *n, uint32_t x, uint32_t *qkv)
{
    static const char *const roles[2] = {"qkv.weight", "qkv.bias"};
    int64_t queries = n->heads / n->kv_heads;
    int64_t parts[3] = {queries * n->dim, n->dim, n->dim};
    if (ranks_of_a_group(trace, layer) > 1) {
        project_gathered(trace, layer, n, x, qkv);
        return;
    }
    uint32_t mixed = ms_splitproducts_product(
        trace, layer, roles, field_of(layer, "bias").b, x,
        (n->heads + 2 * n->kv_heads) * n->dim,
        ms_shards_split(trace) == MS_SPLIT_HEADS ? MS_SPLIT_COLUMNS
                                                 : MS_SPLIT_NOT);
    if (trace->err)
        return;
    int64_t dims[4] = {at(trace, mixed)->size[0], at(trace, mixed)->size[1],
                       n->kv_heads, (queries + 2) * n->dim};
    int64_t heads[4] = {dims[0], dims[1], n->heads, n->dim};
    mixed =
        ms_trace_rebind(trace, mixed, ms_view_reshape(trace, mixed, 4, dims));
    ms_split_sizes(trace, mixed, 3, 3, parts, qkv);
    ms_trace_drop(trace, mixed);
    if (!trace->err)
        qkv[0] = ms_trace_rebind(trace, qkv[0],
                                 ms_view_reshape(trace, qkv[0], 4, heads));
}

/* CrossAttention: keys and values are views of one product's result, head by
 * head. */
static void project_crossed(ms_trace *trace, const ms_layer *layer,
                            const ms_attention_sizes *n, const uint32_t *in,
                            uint32_t *qkv)
{
    static const char *const roles[2][2] = {{"q.weight", "q.bias"},
                                            {"kv.weight", "kv.bias"}};
    int64_t parts[2] = {n->dim, n->dim};
    ms_split split = ms_shards_split(trace) == MS_SPLIT_HEADS ? MS_SPLIT_COLUMNS
                                                              : MS_SPLIT_NOT;
    uint32_t mixed[2];
    for (uint32_t i = 2; i-- > 0;) { /* the keys' product runs first */
        mixed[i] = ms_splitproducts_product(trace, layer, roles[i],
                                            field_of(layer, "bias").b, in[i],
                                            (i + 1) * n->heads * n->dim, split);
        if (trace->err)
            return;
        int64_t dims[4] = {at(trace, mixed[i])->size[0],
                           at(trace, mixed[i])->size[1], n->heads,
                           (i + 1) * n->dim};
        mixed[i] = ms_trace_rebind(trace, mixed[i],
                                   ms_view_reshape(trace, mixed[i], 4, dims));
    }
    qkv[0] = mixed[0];
    ms_split_sizes(trace, mixed[1], 3, 2, parts, qkv + 1);
    ms_trace_drop(trace, mixed[1]);
}

/* Transformer Engine's norm makes its input contiguous, which it saves. */
static uint32_t norm_heads(ms_trace *trace, uint32_t x, const char *role,
                           int64_t dim)
{
    uint32_t weight = ms_trace_parameter(trace, role, 1, &dim);
    uint32_t whole = ms_view_contiguous(trace, x);
    uint32_t y = ms_norm_rms(trace, whole, weight);
    ms_trace_drop(trace, whole);
    return y;
}

/* Reads x and the positions' angles, makes what it gives. */
static uint32_t turn(ms_trace *trace, const char *op, uint32_t x,
                     uint32_t angles)
{
    ms_trace_begin(trace, op);
    ms_trace_read(trace, x);
    ms_trace_read(trace, angles);
    if (trace->err)
        return MS_NONE;
    uint32_t y = ms_trace_make_like(trace, "rotated", x);
    ms_trace_end(trace, 3 * (double)ms_trace_elements(at(trace, x)), false);
    return y;
}

static void turn_backward(ms_trace *trace, const ms_node *node,
                          const uint32_t *grads, uint32_t *out)
{
    out[0] = turn(trace, node->rule->op, grads[0], node->saved[0]);
}

static const ms_rule turn_rule = {"FusedRoPEBackward", "fused_rope_backward",
                                  turn_backward};

/* apply_rope_fusion: a tensor of its own; the angles are saved. */
static uint32_t rotate(ms_trace *trace, uint32_t x, int64_t turning)
{
    if (trace->err)
        return MS_NONE;
    int64_t dims[2] = {at(trace, x)->size[1], turning};
    uint32_t angles =
        ms_sharedtables_buffer(trace, "rotary_pos_emb", MS_FLOAT32, dims);
    uint32_t y = turn(trace, "fused_rope", x, angles);
    uint32_t n = ms_trace_node(trace, &turn_rule, &x, 1, &y, 1);
    ms_trace_save(trace, n, angles);
    return y;
}

/* Norms and positions of q and k; what the kernel reads then lies apart from
 * the product's result.  named: what forward's variables name to its end
 * (Attention.forward: query, key, value), of which value, never turned, is a
 * view of that result. */
static void prepare(ms_trace *trace, const ms_layer *layer,
                    const ms_attention_sizes *n, uint32_t *qkv, uint32_t *named)
{
    static const char *const norms[2] = {"q_norm.weight", "k_norm.weight"};
    bool normed = is_word(layer, "qk_norm", "head");
    bool flash = ms_mcoresettings_backend(trace->settings) == MS_MCORE_FLASH;
    bool many = flash && at(trace, qkv[0])->size[0] > 1;
    bool rotary = field_of(layer, "rotary").b;
    bool apart = normed || rotary || n->kv_heads != n->heads ||
                 ranks_of_a_group(trace, layer) > 1 ||
                 ms_contextops_is_joint(trace) || flash;
    for (uint32_t i = 0; i < 2 && normed; i++)
        qkv[i] = ms_trace_rebind(trace, qkv[i],
                                 norm_heads(trace, qkv[i], norms[i], n->dim));
    for (uint32_t i = 0; i < 2 && rotary; i++)
        qkv[i] =
            ms_trace_rebind(trace, qkv[i], rotate(trace, qkv[i], n->turning));
    for (uint32_t i = 0; i < 3; i++) {
        named[i] = qkv[i];
        ms_trace_ref(trace, named[i]);
    }
    for (uint32_t i = 0; i < 3 && apart; i++)
        qkv[i] = ms_trace_rebind(trace, qkv[i],
                                 many ? ms_view_copy(trace, qkv[i])
                                      : ms_view_contiguous(trace, qkv[i]));
}

/* ---- op by op ------------------------------------------------------------ */

/* Inputs: a, b.  mat2's gradient first, then self's. */
static void product_backward(ms_trace *trace, const ms_node *node,
                             const uint32_t *grads, uint32_t *out)
{
    for (uint32_t i = 2; i-- > 0;) {
        if (!node->needs[i])
            continue;
        ms_trace_begin(trace, node->rule->op);
        ms_trace_read(trace, grads[0]);
        ms_trace_read(trace, node->input[1 - i]);
        out[i] = ms_trace_make_like(trace, "grad", node->input[i]);
        ms_opend_product(trace, node->flops, out[i]);
    }
}

static const ms_rule product_rule = {"BaddbmmBackward0", "aten::bmm",
                                     product_backward};

/* A product over all heads: [batch, heads, rows, columns] of a and b. */
static uint32_t multiply(ms_trace *trace, const char *op, uint32_t a,
                         uint32_t b, uint32_t into, const int64_t *dims,
                         double inner)
{
    uint32_t inputs[2] = {a, b};
    double flops = 2 * (double)dims[0] * (double)dims[1] * (double)dims[2] *
                   (double)dims[3] * inner;
    ms_trace_begin(trace, op);
    ms_trace_read(trace, a);
    ms_trace_read(trace, b);
    ms_trace_read(trace, into);
    if (trace->err)
        return MS_NONE;
    uint32_t y = ms_trace_make(trace, "out", at(trace, a)->dtype, 4, dims);
    ms_opend_product(trace, flops, y);
    uint32_t n = ms_trace_node(trace, &product_rule, inputs, 2, &y, 1);
    if (n != MS_NONE)
        trace->nodes[n].flops = flops;
    ms_trace_save(trace, n, a);
    ms_trace_save(trace, n, b);
    return y;
}

/* What baddbmm adds its product to, times 0: torch.empty, or the buffer that
 * all layers share. */
static uint32_t scores_into(ms_trace *trace, uint32_t q, const int64_t *dims)
{
    uint8_t dtype = at(trace, q)->dtype;
    if (trace->settings->training->mcore_spec == MS_MCORE_LOCAL)
        return ms_memorybuffer_take(trace, dtype, 4, dims);
    ms_trace_begin(trace, "aten::empty");
    uint32_t y = ms_trace_make(trace, "matmul_result", dtype, 4, dims);
    ms_trace_end(trace, 0, false);
    return y;
}

/* repeat_interleave over the queries that share it. */
static uint32_t repeat(ms_trace *trace, uint32_t x, int64_t heads)
{
    if (trace->err)
        return MS_NONE;
    ms_tensor k = *at(trace, x);
    int64_t apart[5] = {k.size[0], k.size[1], k.size[2], 1, k.size[3]};
    int64_t joined[4] = {k.size[0], k.size[1], heads, k.size[3]};
    ms_trace_ref(trace, x);
    x = ms_trace_rebind(trace, x, ms_view_reshape(trace, x, 5, apart));
    x = ms_trace_rebind(trace, x,
                        ms_view_expand(trace, x, 3, heads / k.size[2]));
    return ms_trace_rebind(trace, x, ms_view_reshape(trace, x, 4, joined));
}

/* Scores, fused scale, mask and softmax, dropout, weighted sum.  The scores'
 * variable lives to the end of the function. */
static uint32_t by_ops(ms_trace *trace, const ms_layer *layer,
                       const ms_attention_sizes *n, uint32_t *qkv)
{
    for (uint32_t i = 1; i < 3 && n->kv_heads != n->heads; i++)
        qkv[i] =
            ms_trace_rebind(trace, qkv[i], repeat(trace, qkv[i], n->heads));
    if (trace->err)
        return MS_NONE;
    int64_t batch = at(trace, qkv[0])->size[0];
    int64_t sequence = at(trace, qkv[0])->size[1];
    int64_t keys = at(trace, qkv[1])->size[1];
    int64_t square[4] = {batch, n->heads, sequence, keys};
    int64_t heads[4] = {batch, n->heads, sequence, n->dim};
    trace->op_flags |= MS_OP_CORE;
    uint32_t into = scores_into(trace, qkv[0], square);
    uint32_t scores = multiply(trace, "aten::baddbmm", qkv[0], qkv[1], into,
                               square, (double)n->dim);
    ms_trace_drop(trace, into);
    uint32_t softmax = ms_norm_softmax(trace, scores);
    uint32_t weights =
        ms_pointwise_dropout(trace, softmax, field_of(layer, "dropout").f);
    ms_trace_drop(trace, softmax);
    trace->op_flags &= (uint8_t)~MS_OP_CORE;
    uint32_t y = multiply(trace, "aten::bmm", weights, qkv[2], MS_NONE, heads,
                          (double)keys);
    ms_trace_drop(trace, weights);
    ms_trace_drop(trace, scores);
    return y;
}

/* ---- the layer ----------------------------------------------------------- */

/* The fused kernel over [batch, heads, sequence, dim] views; FlashAttention's
 * result goes on as a copy with the sequence first. */
static uint32_t by_kernel(ms_trace *trace, const ms_layer *layer,
                          const uint32_t *qkv, bool flash)
{
    ms_attended attended = {.causal = field_of(layer, "causal").b,
                            .window = field_of(layer, "window").i};
    uint32_t view[3];
    for (uint32_t i = 0; i < 3; i++)
        view[i] = ms_view_transpose(trace, qkv[i], 1, 2);
    uint32_t y =
        ms_contextops_is_joint(trace)
            ? ms_contextops_joint(trace, view[0], view[1], view[2],
                                  attended.causal)
            : ms_attention_flash(trace, view[0], view[1], view[2], attended);
    ms_split_drop(trace, 3, view);
    if (!flash || trace->err)
        return y;
    y = ms_trace_rebind(trace, y, ms_view_transpose(trace, y, 1, 2));
    y = ms_trace_rebind(trace, y, ms_view_copy(trace, y));
    return ms_trace_rebind(trace, y, ms_view_transpose(trace, y, 1, 2));
}

static bool has_bias(const ms_layer *layer)
{
    if (is_word(layer, "out_bias", "same"))
        return field_of(layer, "bias").b;
    return is_word(layer, "out_bias", "yes");
}

ms_err ms_mcoreattention_forward(ms_trace *trace, const ms_layer *layer,
                                 const ms_attention_sizes *n,
                                 const uint32_t *in, uint32_t *out)
{
    static const char *const roles[2] = {"proj.weight", "proj.bias"};
    int64_t backend = ms_mcoresettings_backend(trace->settings);
    uint32_t qkv[3], named[3], y;
    MS_TRY(check(trace, layer));
    if (layer->n_in > 1)
        project_crossed(trace, layer, n, in, qkv);
    else
        project(trace, layer, n, in[0], qkv);
    MS_TRY(trace->err);
    if (field_of(layer, "sinks").b && trace->settings->train)
        ms_raw_states(trace, ms_trace_parameter(trace, "sinks", 1, &n->heads));
    prepare(trace, layer, n, qkv, named);
    bool exchanges = trace->context && !ms_contextops_is_joint(trace);
    for (uint32_t i = 0; i < 3 && exchanges; i++)
        qkv[i] = ms_trace_rebind(trace, qkv[i],
                                 ms_contextops_to_heads(trace, qkv[i]));
    if (backend == MS_MCORE_UNFUSED)
        y = by_ops(trace, layer, n, qkv);
    else
        y = by_kernel(trace, layer, qkv, backend == MS_MCORE_FLASH);
    if (exchanges)
        y = ms_contextops_back(trace, y);
    MS_TRY(trace->err);
    ms_split_drop(trace, 3, qkv);
    y = ms_projections_join(trace, y, n->heads * n->dim);
    *out = ms_splitproducts_product(
        trace, layer, roles, has_bias(layer), y, n->width,
        ms_shards_split(trace) == MS_SPLIT_HEADS ? MS_SPLIT_ROWS
                                                 : MS_SPLIT_NOT);
    ms_trace_drop(trace, y);
    ms_split_drop(trace, 3, named);
    return trace->err;
}
