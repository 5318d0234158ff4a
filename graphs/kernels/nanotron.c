/* SPDX-License-Identifier: GPL-3.0-or-later */
/* huggingface/nanotron@2411b022, src/nanotron/models/llama.py: norms of one
 * kernel (nn/layer_norm.py, TritonRMSNorm); queries, keys and values that are
 * copied with the batch first, keys and values once more, before
 * FlashAttention's rotation in place; gates by two ops; a loss of logits that
 * the model has cast to fp32 (parallel/tensor_parallel/functional.py,
 * _ShardedCrossEntropy).  Of a decoder layer, in s b h, with an MLP of width f,
 * t ranks keep:
 *
 *     what both norms read                           2 / t
 *     queries, and behind them the first k and v     3 / t
 *     keys and values, rotated                       2 / t
 *     the kernel's output                            1 / t
 *     the same with the sequence first, where b > 1  1 / t
 *     gate and up, act(gate), the product            4 f / (h t)
 *     what the two products by columns read          2 / t, gathered 2
 *
 * With f = 2 h that is 17 / t + 2, and 4 bytes a head and token.  Tensors are
 * [batch, sequence, ...] here; in nanotron the sequence comes first, and a copy
 * that this makes is a copy here. */
#include "graphs/kernels/mcore/mcore.h"
#include "graphs/layers/attention/projections.h"
#include "graphs/layers/attention/sdpa.h"
#include "graphs/layers/attention/sharedtables.h"
#include "graphs/layers/headloss.h"
#include "graphs/layers/splitproducts.h"
#include "graphs/layertypes.h"
#include "graphs/ops/ops.h"
#include "graphs/trace/trace.h"

#include <assert.h>
#include <stddef.h>

static ms_value field_of(const ms_layer *layer, const char *name)
{
    const ms_value *field = ms_layertypes_field(layer, name);
    assert(field != NULL);
    return *field;
}

/* ---- what nanotron has not ----------------------------------------------- */

static ms_err refuse(ms_trace *trace, const ms_layer *layer, const char *what)
{
    return ms_trace_fail(trace, layer, "take other kernels, such as flash",
                         "attention \"%s\": nanotron's kernels know no %s",
                         layer->name, what);
}

static ms_err check(ms_trace *trace, const ms_layer *layer)
{
    static const char *const words[] = {"alibi", "softcap", "complex", "sinks"};
    for (uint32_t i = 0; i < sizeof words / sizeof *words; i++)
        if (field_of(layer, words[i]).b)
            return refuse(trace, layer, words[i]);
    if (field_of(layer, "qk_norm").i > 0)
        return refuse(trace, layer, "qk_norm");
    if (layer->n_in > 1)
        return refuse(trace, layer, "second input");
    if (trace->context)
        return refuse(trace, layer, "divided sequence (context)");
    return MS_OK;
}

/* ---- queries, keys, values ----------------------------------------------- */

/* As many heads each: .view(s, b, 3, n, d).permute(2, 1, 0, 3, 4)
 * .contiguous(), of which each is a row. */
static void copy_joined(ms_trace *trace, const ms_attention_sizes *n,
                        uint32_t mixed, uint32_t *qkv)
{
    static const uint32_t order[5] = {2, 0, 1, 3, 4};
    const ms_tensor *from = ms_trace_at(trace, mixed);
    int64_t dims[5] = {from->size[0], from->size[1], 3, n->heads, n->dim};
    uint32_t x = ms_view_reshape(trace, mixed, 5, dims);
    x = ms_trace_rebind(trace, x, ms_view_permute(trace, x, order));
    x = ms_trace_rebind(trace, x, ms_view_contiguous(trace, x));
    ms_split_unbind(trace, x, qkv);
    ms_trace_drop(trace, x);
}

/* Fewer heads of keys: torch.split, .transpose(0, 1).contiguous() each. */
static void copy_apart(ms_trace *trace, const ms_attention_sizes *n,
                       uint32_t mixed, uint32_t *qkv)
{
    const int64_t heads[3] = {n->heads, n->kv_heads, n->kv_heads};
    int64_t parts[3] = {heads[0] * n->dim, heads[1] * n->dim,
                        heads[2] * n->dim};
    ms_split_sizes(trace, mixed, 2, 3, parts, qkv);
    for (uint32_t i = 0; i < 3 && !trace->err; i++) {
        const ms_tensor *from = ms_trace_at(trace, qkv[i]);
        int64_t dims[4] = {from->size[0], from->size[1], heads[i], n->dim};
        qkv[i] = ms_trace_rebind(trace, qkv[i], ms_view_copy(trace, qkv[i]));
        qkv[i] = ms_trace_rebind(trace, qkv[i],
                                 ms_view_reshape(trace, qkv[i], 4, dims));
    }
}

/* torch.cat([k[None], v[None]]).permute(1, 2, 0, 3, 4).contiguous(): two copies
 * of both, of which the second stays. */
static uint32_t join_keys(ms_trace *trace, const ms_attention_sizes *n,
                          const uint32_t *qkv)
{
    static const uint32_t order[5] = {1, 2, 0, 3, 4};
    uint32_t rows[2] = {MS_NONE, MS_NONE};
    for (uint32_t i = 0; i < 2 && !trace->err; i++) {
        const ms_tensor *from = ms_trace_at(trace, qkv[1 + i]);
        int64_t dims[5] = {1, from->size[0], from->size[1], n->kv_heads,
                           n->dim};
        rows[i] = ms_view_reshape(trace, qkv[1 + i], 5, dims);
    }
    uint32_t kv = ms_view_cat(trace, rows, 2, 0);
    ms_split_drop(trace, 2, rows);
    kv = ms_trace_rebind(trace, kv, ms_view_permute(trace, kv, order));
    return ms_trace_rebind(trace, kv, ms_view_contiguous(trace, kv));
}

/* [batch, sequence, heads, dim] as kernels see it. */
static uint32_t turned(ms_trace *trace, uint32_t x)
{
    return ms_trace_rebind(trace, x, ms_view_transpose(trace, x, 1, 2));
}

/* Each layer has tables of its own: FlashAttention's cosines and sines of the
 * sequence, and complex numbers of all positions, for inference. */
static void rotate(ms_trace *trace, int64_t turning, uint32_t *qk)
{
    if (trace->err)
        return;
    const ms_tensor like = *ms_trace_at(trace, qk[0]);
    int64_t half[2] = {like.size[2], turning / 2};
    int64_t whole[2] = {ms_sharedtables_longest(trace->settings, like.size[2]),
                        turning};
    uint32_t cos = ms_trace_buffer(trace, "cos_cached", like.dtype, 2, half);
    uint32_t sin = ms_trace_buffer(trace, "sin_cached", like.dtype, 2, half);
    ms_trace_buffer(trace, "freqs_cis", MS_FLOAT32, 2, whole);
    for (uint32_t i = 0; i < 2; i++)
        qk[i] = ms_trace_rebind(trace, qk[i],
                                ms_rotary_fused(trace, qk[i], cos, sin));
}

/* The queries stay where the first keys and values are, too. */
static void prepare(ms_trace *trace, const ms_layer *layer,
                    const ms_attention_sizes *n, uint32_t mixed, uint32_t *qkv)
{
    static const int64_t one[2] = {1, 1};
    uint32_t parts[2];
    if (trace->err)
        return;
    if (n->heads == n->kv_heads)
        copy_joined(trace, n, mixed, qkv);
    else
        copy_apart(trace, n, mixed, qkv);
    uint32_t kv = join_keys(trace, n, qkv);
    ms_split_sizes(trace, kv, 2, 2, one, parts);
    ms_trace_drop(trace, kv);
    for (uint32_t i = 0; i < 2 && !trace->err; i++) {
        const ms_tensor *from = ms_trace_at(trace, parts[i]);
        int64_t dims[4] = {from->size[0], from->size[1], n->kv_heads, n->dim};
        parts[i] = ms_trace_rebind(trace, parts[i],
                                   ms_view_reshape(trace, parts[i], 4, dims));
        qkv[1 + i] = ms_trace_rebind(trace, qkv[1 + i], parts[i]);
    }
    for (uint32_t i = 0; i < 3 && !trace->err; i++)
        qkv[i] = turned(trace, qkv[i]);
    if (field_of(layer, "rotary").b)
        rotate(trace, n->turning, qkv);
}

/* ---- the layer ----------------------------------------------------------- */

static ms_split split_of(const ms_trace *trace, ms_split split)
{
    return ms_shards_split(trace) == MS_SPLIT_HEADS ? split : MS_SPLIT_NOT;
}

static bool has_bias(const ms_layer *layer)
{
    enum { SAME, YES };
    int64_t own = field_of(layer, "out_bias").i;
    return own == SAME ? field_of(layer, "bias").b : own == YES;
}

/* The kernel's output goes on with the sequence first, which F.linear copies:
 * with one sample that is a view. */
static uint32_t attend(ms_trace *trace, const ms_layer *layer,
                       const ms_attention_sizes *n, const uint32_t *qkv)
{
    const ms_attended attended = {.causal = field_of(layer, "causal").b,
                                  .window = field_of(layer, "window").i,
                                  .dropout = field_of(layer, "dropout").f};
    uint32_t y = ms_attention_flash(trace, qkv[0], qkv[1], qkv[2], attended);
    if (trace->err)
        return MS_NONE;
    if (ms_trace_at(trace, y)->size[0] > 1) {
        y = turned(trace, y);
        y = ms_trace_rebind(trace, y, ms_view_copy(trace, y));
        y = turned(trace, y);
    }
    return ms_projections_join(trace, y, n->heads * n->dim);
}

/* The product's result and q, k and v have names to the end. */
static ms_err attention(ms_trace *trace, const ms_layer *layer,
                        const ms_attention_sizes *n, const uint32_t *in,
                        uint32_t *out)
{
    static const char *const into[2] = {"qkv.weight", "qkv.bias"};
    static const char *const from[2] = {"proj.weight", "proj.bias"};
    uint32_t qkv[3] = {MS_NONE, MS_NONE, MS_NONE};
    MS_TRY(check(trace, layer));
    uint32_t mixed =
        ms_splitproducts_product(trace, layer, into, field_of(layer, "bias").b,
                                 in[0], (n->heads + 2 * n->kv_heads) * n->dim,
                                 split_of(trace, MS_SPLIT_COLUMNS));
    prepare(trace, layer, n, mixed, qkv);
    uint32_t y = attend(trace, layer, n, qkv);
    *out = ms_splitproducts_product(trace, layer, from, has_bias(layer), y,
                                    n->width, split_of(trace, MS_SPLIT_ROWS));
    ms_trace_drop(trace, y);
    ms_split_drop(trace, 3, qkv);
    ms_trace_drop(trace, mixed);
    return trace->err;
}

/* The loss is within the model: nothing else holds the logits. */
static void settle(ms_training *training)
{
    const uint32_t row = offsetof(ms_training, hold_output) / sizeof(int64_t);
    if (!(training->was_set >> row & 1))
        training->hold_output = MS_HOLD_NONE;
}

/* models/llama.py, get_block_compute_costs, whose attention has as many heads
 * of keys as of queries: of 2 (heads + kv_heads) blocks of weights 4 heads. */
static double stage_cost(const ms_layer *layer, double macs)
{
    const ms_value *heads = ms_layertypes_field(layer, "heads");
    const ms_value *kv_heads = ms_layertypes_field(layer, "kv_heads");
    if (heads == NULL || kv_heads == NULL || kv_heads->i == 0)
        return macs;
    return macs * 2 * (double)heads->i / (double)(heads->i + kv_heads->i);
}

static const ms_kernel_hooks hooks = {
    .settle = settle,
    .attention = attention,
    .loss_temporaries = ms_mcoreloss_temporaries,
    .joined_with = ms_mcorelayers_joined_with,
    .stage_cost = stage_cost,
};

const ms_kernel_set ms_nanotron = {
    .attention = &ms_sdpa_flash,
    .loss = &ms_losskernels_megatron,
    .norm = {.firm = true},
    .activation = {.maker = &ms_torchkernels_apart},
    .rotary = {.firm = true},
    .keeps_parts = true,
    .gathers_in_buffer = true, /* parallel/utils.py, MemoryBuffer */
    .casts_head = true,
    .joins_gates = true,
    .hooks = &hooks,
};
