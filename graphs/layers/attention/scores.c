/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/layers/attention/scores.h"
#include "graphs/layers/attention/sharedtables.h"

#include "graphs/aten/opcall.h"
#include "graphs/layers/attention/sdpa.h"
#include "graphs/layers/layers.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

static const ms_tensor *at(ms_trace *trace, uint32_t tensor)
{
    return ms_trace_at(trace, tensor);
}

/* ---- masks and biases ---------------------------------------------------- */

/* The causal mask as nanoGPT holds it: a buffer [1, 1, n, n] of ones. */
static uint32_t fill_by_ones(ms_trace *trace, uint32_t scores)
{
    if (trace->err)
        return MS_NONE;
    int64_t sequence = at(trace, scores)->size[2];
    int64_t longest = ms_sharedtables_longest(trace->settings, sequence);
    int64_t whole[4] = {1, 1, longest, longest};
    int64_t used[4] = {1, 1, sequence, sequence};
    uint32_t ones =
        ms_trace_buffer(trace, "causal_mask", trace->weight_dtype, 4, whole);
    uint32_t mask = ms_pointwise_is_zero(trace, ones, 4, used);
    uint32_t y = ms_pointwise_masked_fill(trace, scores, mask);
    ms_trace_drop(trace, mask);
    return y;
}

/* Adds a mask of zeros and -inf, which all layers share, or all layers with a
 * sliding window. */
static uint32_t add_mask(ms_trace *trace, const ms_scores *how, uint32_t scores)
{
    if (trace->err)
        return MS_NONE;
    uint32_t mask = ms_sharedtables_rows(
        trace, how->window > 0 ? "sliding_mask" : "causal_mask",
        at(trace, scores)->size[2], 0);
    uint32_t y = ms_pointwise_add(trace, scores, mask);
    ms_trace_drop(trace, mask);
    return y;
}

/* Adds the mask of the padding: which keys exist, [batch, 1, 1, keys]. */
static uint32_t add_padding_mask(ms_trace *trace, uint32_t scores)
{
    if (trace->err)
        return MS_NONE;
    const ms_tensor *a = at(trace, scores);
    int64_t dims[2] = {a->size[0], a->size[3]};
    int64_t wide[4] = {dims[0], 1, 1, dims[1]};
    uint32_t rows = ms_sharedtables_buffer(trace, "attention_mask",
                                           trace->weight_dtype, dims);
    uint32_t mask = ms_view_reshape(trace, rows, 4, wide);
    uint32_t y = ms_pointwise_add(trace, scores, mask);
    ms_trace_drop(trace, mask);
    return y;
}

/* A mask with a byte for each pair of tokens, of this layer or shared by all.
 */
static uint32_t byte_mask(ms_trace *trace, uint32_t scores, bool shared)
{
    if (trace->err)
        return MS_NONE;
    int64_t n = at(trace, scores)->size[2];
    int64_t dims[2] = {n, n};
    if (shared)
        return ms_sharedtables_buffer(trace, "causal_bytes", MS_BYTE, dims);
    dims[0] = dims[1] = ms_sharedtables_longest(trace->settings, n);
    return ms_trace_buffer(trace, "causal_bytes", MS_BYTE, 2, dims);
}

/* The bias of ALiBi, [1, heads, 1, keys], which all layers share. */
static uint32_t alibi_of(ms_trace *trace, uint32_t q, uint32_t k)
{
    if (trace->err)
        return MS_NONE;
    int64_t dims[2] = {at(trace, q)->size[1], at(trace, k)->size[2]};
    int64_t wide[4] = {1, dims[0], 1, dims[1]};
    uint32_t slopes =
        ms_sharedtables_buffer(trace, "alibi", trace->weight_dtype, dims);
    return ms_view_reshape(trace, slopes, 4, wide);
}

/* ---- steps --------------------------------------------------------------- */

static uint32_t step(ms_trace *trace, uint32_t a, uint32_t y)
{
    return ms_trace_rebind(trace, a, y);
}

/* softcap * tanh(a / softcap) */
static uint32_t cap(ms_trace *trace, uint32_t a)
{
    a = step(trace, a, ms_pointwise_div_scalar(trace, a));
    a = step(trace, a, ms_pointwise_unary(trace, &ms_pointwise_tanh, a));
    return step(trace, a, ms_pointwise_mul_scalar(trace, a));
}

/* F.softmax(a, dim=-1, dtype=torch.float32).to(a.dtype) */
static uint32_t softmax_fp32(ms_trace *trace, uint32_t a)
{
    if (trace->err)
        return MS_NONE;
    uint8_t dtype = at(trace, a)->dtype;
    a = step(trace, a, ms_cast_to(trace, a, MS_FLOAT32));
    a = step(trace, a, ms_norm_softmax(trace, a));
    return step(trace, a, ms_cast_to(trace, a, dtype));
}

/* Megatron's fused kernel goes over four heads or samples at a time, and others
 * take the way of torch (Megatron-LM v2.0 to v3.0, megatron/model/
 * fused_softmax.py, is_kernel_available and forward_torch_softmax): to fp32,
 * times a number, filled by the mask, softmax, and back. */
static uint32_t fused_softmax(ms_trace *trace, const ms_scores *how, uint32_t a)
{
    if (trace->err)
        return MS_NONE;
    const ms_tensor *x = at(trace, a);
    uint8_t dtype = x->dtype;
    if (!trace->kernels.fuses_by_four || x->size[0] * x->size[1] % 4 == 0)
        return step(trace, a, ms_norm_softmax(trace, a));
    a = step(trace, a, ms_cast_to(trace, a, MS_FLOAT32));
    a = step(trace, a, ms_pointwise_mul_scalar(trace, a));
    if (how->causal)
        a = step(trace, a,
                 ms_pointwise_masked_fill(trace, a, byte_mask(trace, a, true)));
    a = step(trace, a, ms_norm_softmax(trace, a));
    return step(trace, a, ms_cast_to(trace, a, dtype));
}

/* a / torch.full([], sqrt(dim)) */
static uint32_t by_tensor(ms_trace *trace, uint32_t a)
{
    if (trace->err)
        return MS_NONE;
    ms_trace_begin(trace, "aten::full");
    uint32_t number = ms_trace_make(trace, "scale", at(trace, a)->dtype, 0,
                                    (const int64_t[]){0});
    ms_trace_end(trace, 0, false);
    const uint32_t both[2] = {a, number};
    uint32_t y = ms_opcall_like_run(trace, "aten::div", both, 2);
    ms_trace_drop(trace, number);
    return y;
}

/* torch.where(mask, a, torch.full([], lowest)) */
static uint32_t where(ms_trace *trace, uint32_t a)
{
    uint32_t mask = byte_mask(trace, a, false);
    ms_opcall call = {.op = "aten::where", .flops = 1};
    if (trace->err)
        return MS_NONE;
    ms_trace_begin(trace, "aten::full");
    uint32_t number = ms_trace_make(trace, "lowest", at(trace, a)->dtype, 0,
                                    (const int64_t[]){0});
    ms_trace_end(trace, 0, false);
    const uint32_t inputs[3] = {mask, a, number};
    ms_opcall_like(trace, &call.made[0], a);
    uint32_t y = ms_opcall_run(trace, &call, inputs, 3);
    ms_trace_drop(trace, number);
    return y;
}

/* a /= number, a *= number */
static uint32_t in_place(ms_trace *trace, const char *op, uint32_t a)
{
    ms_opcall call = {.op = op, .overload = "Scalar", .flops = 1};
    return step(trace, a, ms_opcall_in_place(trace, &call, &a, 1));
}

/* ---- weights ------------------------------------------------------------- */

/* The sink is one more score in each row, which is dropped from the weights
 * after softmax.  The maximum is subtracted first, in the precision of the
 * scores (transformers modeling_gpt_oss.py, eager_attention_forward). */
static uint32_t weights_with_sinks(ms_trace *trace, uint32_t a, uint32_t sinks)
{
    if (trace->err)
        return MS_NONE;
    ms_tensor all = *at(trace, a);
    const int64_t dims[4] = {1, all.size[1], 1, 1}, last[1] = {3};
    const ms_oparg args[] = {{.kind = MS_ARG_TENSOR},
                             {.kind = MS_ARG_INTS, .n = 1, .value.ints = last},
                             {.kind = MS_ARG_BOOL, .value.i = 1}};
    ms_opcall call = {.op = "aten::max",
                      .overload = "dim",
                      .args = args,
                      .n_args = 3,
                      .flops = 1};
    uint32_t sink = ms_view_reshape(trace, sinks, 4, dims);
    sink = step(trace, sink, ms_view_expand(trace, sink, 0, all.size[0]));
    sink = step(trace, sink, ms_view_expand(trace, sink, 2, all.size[2]));
    const uint32_t parts[2] = {a, sink};
    uint32_t both = ms_view_cat(trace, parts, 2, 3);
    ms_trace_drop(trace, sink);
    ms_trace_drop(trace, a);
    for (uint32_t k = 0; k < MS_OPCALL_OUTPUTS; k++) {
        ms_opcall_like(trace, &call.made[k], both);
        call.made[k].size[3] = 1;
    }
    call.made[1].dtype = MS_INT64;
    uint32_t top = ms_opcall_run(trace, &call, &both, 1);
    uint32_t less = ms_pointwise_sub(trace, both, top);
    ms_trace_drop(trace, top);
    both = step(trace, both, less);
    uint32_t y = ms_norm_softmax(trace, both);
    ms_trace_drop(trace, both);
    return step(trace, y, ms_view_slice(trace, y, 3, all.size[3]));
}

static uint32_t softmax_or_sinks(ms_trace *trace, const ms_scores *how,
                                 uint32_t a)
{
    return how->sinks != MS_NONE ? weights_with_sinks(trace, a, how->sinks)
                                 : softmax_fp32(trace, a);
}

static uint32_t fill_by_bytes(ms_trace *trace, uint32_t a)
{
    uint32_t mask = byte_mask(trace, a, true);
    return step(trace, a, ms_pointwise_masked_fill(trace, a, mask));
}

/* Runs one ms_score_step on a and drops a. */
static uint32_t take_step(ms_trace *trace, const ms_scores *how, uint8_t which,
                          uint32_t a, uint32_t alibi)
{
    switch ((ms_score_step)which) {
    case MS_SCORE_END:
        break;
    case MS_SCORE_DIVIDE:
        return step(trace, a, ms_pointwise_div_scalar(trace, a));
    case MS_SCORE_MULTIPLY:
        return step(trace, a, ms_pointwise_mul_scalar(trace, a));
    case MS_SCORE_BY_TENSOR:
        return step(trace, a, by_tensor(trace, a));
    case MS_SCORE_IN_PLACE:
        return in_place(trace, how->alibi ? "aten::mul" : "aten::div", a);
    case MS_SCORE_CAP:
        return how->softcap ? cap(trace, a) : a;
    case MS_SCORE_SLOPES:
        return alibi != MS_NONE
                   ? step(trace, a, ms_pointwise_add(trace, a, alibi))
                   : a;
    case MS_SCORE_BIAS:
        return step(trace, a, ms_pointwise_add_in_place(trace, a, how->bias));
    case MS_SCORE_MASK:
        return step(trace, a, add_mask(trace, how, a));
    case MS_SCORE_MASK_CAUSAL:
        return how->causal ? step(trace, a, add_mask(trace, how, a)) : a;
    case MS_SCORE_MASK_PADDING:
        return step(trace, a,
                    how->causal ? add_mask(trace, how, a)
                                : add_padding_mask(trace, a));
    case MS_SCORE_FILL_ONES:
        return how->causal ? step(trace, a, fill_by_ones(trace, a)) : a;
    case MS_SCORE_FILL_BYTES:
        return fill_by_bytes(trace, a);
    case MS_SCORE_WHERE:
        return how->causal ? step(trace, a, where(trace, a)) : a;
    case MS_SCORE_SOFTMAX:
        return fused_softmax(trace, how, a);
    case MS_SCORE_SOFTMAX_FP32:
        return softmax_fp32(trace, a);
    case MS_SCORE_SOFTMAX_SINKS:
        return softmax_or_sinks(trace, how, a);
    }
    return a;
}

/* The list of steps that lead from scores to weights. */
static const uint8_t *steps_of(const ms_trace *trace, const ms_scores *how)
{
    static const uint8_t biased[] = {MS_SCORE_BIAS, MS_SCORE_SOFTMAX_FP32,
                                     MS_SCORE_END};
    static const uint8_t fused[] = {MS_SCORE_SOFTMAX, MS_SCORE_END};
    const ms_modelcode *code = &ms_modelcodes[how->code];
    bool plain = !how->rotates && !how->alibi && !how->softcap;
    if (how->bias != MS_NONE)
        return biased;
    if (trace->kernels.fuses_softmax)
        return fused;
    return plain && code->plain_scores[0] != MS_SCORE_END ? code->plain_scores
                                                          : code->scores;
}

bool ms_scores_has_kernel(const ms_trace *trace, const ms_scores *how)
{
    uint8_t path = trace->kernels.attention->path;
    bool odd = how->softcap || how->sinks != MS_NONE;
    uint32_t wants = MS_LACKS_ALL | (how->alibi ? MS_LACKS_SLOPES : 0u) |
                     (odd ? MS_LACKS_CAPS : 0u);
    return (ms_modelcodes[how->code].lacks[path] & wants) == 0;
}

/* ---- attention ----------------------------------------------------------- */

/* q k^T */
static uint32_t multiply(ms_trace *trace, const ms_scores *how, uint32_t q,
                         uint32_t keys, uint32_t alibi)
{
    if (!ms_modelcodes[how->code].multiplies_onto_slopes || trace->err)
        return ms_matmul_batched(trace, q, keys);
    int64_t batch = at(trace, q)->size[0];
    uint32_t bias = ms_view_expand(trace, alibi, 0, batch);
    uint32_t y = ms_matmul_batched_onto(trace, bias, q, keys);
    ms_trace_drop(trace, bias);
    return y;
}

uint32_t ms_scores_attend(ms_trace *trace, const ms_scores *how,
                          const uint32_t *qkv)
{
    uint32_t alibi = MS_NONE;
    trace->op_flags |= MS_OP_CORE;
    if (how->alibi)
        alibi = alibi_of(trace, qkv[0], qkv[1]);
    uint32_t keys = ms_view_transpose(trace, qkv[1], 2, 3);
    uint32_t a = multiply(trace, how, qkv[0], keys, alibi);
    ms_trace_drop(trace, keys);
    for (const uint8_t *at = steps_of(trace, how); *at != MS_SCORE_END; at++)
        a = take_step(trace, how, *at, a, alibi);
    if (alibi != MS_NONE)
        ms_trace_drop(trace, alibi);
    a = step(trace, a, ms_pointwise_dropout(trace, a, how->dropout));
    trace->op_flags &= (uint8_t)~MS_OP_CORE;
    uint32_t y = ms_matmul_batched(trace, a, qkv[2]);
    ms_trace_drop(trace, a);
    return y;
}
