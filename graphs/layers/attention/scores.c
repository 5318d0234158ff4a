/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/layers/attention/scores.h"
#include "graphs/layers/attention/sharedtables.h"

#include "graphs/aten/opcall.h"
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

/* A mask of zeros and -inf is added, one for all layers, or all that see a
 * window. */
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

/* Which keys are there: [batch, 1, 1, keys]. */
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

/* A byte for each pair of tokens; each layer's own, or one for all. */
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

/* ALiBi's bias of the model, [1, heads, 1, keys]. */
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

static uint32_t weights_nanogpt(ms_trace *trace, const ms_scores *how,
                                uint32_t a, uint32_t alibi)
{
    (void)alibi;
    a = step(trace, a, ms_pointwise_mul_scalar(trace, a));
    if (how->causal)
        a = step(trace, a, fill_by_ones(trace, a));
    return step(trace, a, ms_norm_softmax(trace, a));
}

static uint32_t weights_gpt2(ms_trace *trace, const ms_scores *how, uint32_t a,
                             uint32_t alibi)
{
    (void)alibi;
    a = step(trace, a, by_tensor(trace, a));
    if (how->causal)
        a = step(trace, a, where(trace, a));
    return step(trace, a, ms_norm_softmax(trace, a));
}

static uint32_t weights_bert(ms_trace *trace, const ms_scores *how, uint32_t a,
                             uint32_t alibi)
{
    (void)alibi;
    a = step(trace, a, ms_pointwise_div_scalar(trace, a));
    a = step(trace, a,
             how->causal ? add_mask(trace, how, a)
                         : add_padding_mask(trace, a));
    return step(trace, a, ms_norm_softmax(trace, a));
}

static uint32_t weights_falcon(ms_trace *trace, const ms_scores *how,
                               uint32_t a, uint32_t alibi)
{
    if (how->alibi)
        a = step(trace, a, ms_pointwise_add(trace, a, alibi));
    a = in_place(trace, how->alibi ? "aten::mul" : "aten::div", a);
    a = step(trace, a, add_mask(trace, how, a));
    return step(trace, a, ms_norm_softmax(trace, a));
}

static uint32_t weights_mpt(ms_trace *trace, const ms_scores *how, uint32_t a,
                            uint32_t alibi)
{
    (void)how;
    a = step(trace, a, ms_pointwise_mul_scalar(trace, a));
    a = step(trace, a, ms_pointwise_add(trace, a, alibi));
    uint32_t mask = byte_mask(trace, a, true);
    a = step(trace, a, ms_pointwise_masked_fill(trace, a, mask));
    return softmax_fp32(trace, a);
}

/* Scores end with the sink's, which is dropped from the weights: its maximum
 * is subtracted first, in the scores' own precision (GptOssAttention). */
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

static uint32_t weights_llama(ms_trace *trace, const ms_scores *how, uint32_t a,
                              uint32_t alibi)
{
    a = step(trace, a, ms_pointwise_div_scalar(trace, a));
    if (how->softcap)
        a = cap(trace, a);
    if (how->alibi)
        a = step(trace, a, ms_pointwise_add(trace, a, alibi));
    if (how->causal)
        a = step(trace, a, add_mask(trace, how, a));
    if (how->sinks != MS_NONE)
        return weights_with_sinks(trace, a, how->sinks);
    return softmax_fp32(trace, a);
}

/* The product has added the bias. */
static uint32_t weights_bloom(ms_trace *trace, const ms_scores *how, uint32_t a,
                              uint32_t alibi)
{
    (void)alibi;
    a = step(trace, a, add_mask(trace, how, a));
    return softmax_fp32(trace, a);
}

static uint32_t weights_auto(ms_trace *trace, const ms_scores *how, uint32_t a,
                             uint32_t alibi)
{
    bool plain = !how->rotates && !how->alibi && !how->softcap;

    return plain ? weights_nanogpt(trace, how, a, alibi)
                 : weights_llama(trace, how, a, alibi);
}

static uint32_t weights_biased(ms_trace *trace, const ms_scores *how,
                               uint32_t a)
{
    a = step(trace, a, ms_pointwise_add_in_place(trace, a, how->bias));
    return softmax_fp32(trace, a);
}

/* ---- the variants -------------------------------------------------------- */

/* Torch's kernels know neither caps nor sinks. */
static bool is_odd(const ms_scores *how)
{
    return how->softcap || how->sinks != MS_NONE;
}

static bool never(uint8_t kind, const ms_scores *how)
{
    (void)kind, (void)how;
    return false;
}

/* Falcon's flash attention knows no ALiBi. */
static bool but_slopes(uint8_t kind, const ms_scores *how)
{
    return !(kind == MS_ATTENTION_FLASH && how->alibi);
}

/* Models with slopes do not call sdpa. */
static bool as_chosen(uint8_t kind, const ms_scores *how)
{
    return kind != MS_ATTENTION_SDPA || !(is_odd(how) || how->alibi);
}

static bool by_flash(uint8_t kind, const ms_scores *how)
{
    return kind == MS_ATTENTION_FLASH || !is_odd(how);
}

/* How a code makes weights of scores, and whether it has a path that calls a
 * fused kernel of a kind. */
typedef struct variant {
    uint32_t (*weights)(ms_trace *trace, const ms_scores *how, uint32_t a,
                        uint32_t alibi);
    bool (*has_kernel)(uint8_t kind, const ms_scores *how);
    bool adds_slopes; /* in the product, as it multiplies */
} variant;

/* By ms_layers_code. */
static const variant variants[] = {
    [MS_CODE_AUTO] = {weights_auto, as_chosen, false},
    [MS_CODE_LLAMA] = {weights_llama, by_flash, false},
    [MS_CODE_GEMMA] = {weights_llama, by_flash, false},
    [MS_CODE_OLMO2] = {weights_llama, by_flash, false},
    [MS_CODE_T5] = {weights_llama, by_flash, false},
    [MS_CODE_GPT2] = {weights_gpt2, by_flash, false},
    [MS_CODE_BERT] = {weights_bert, by_flash, false},
    [MS_CODE_BLOOM] = {weights_bloom, never, true},
    [MS_CODE_FALCON] = {weights_falcon, but_slopes, false},
    [MS_CODE_MPT] = {weights_mpt, never, false},
    [MS_CODE_GPT_OSS] = {weights_llama, by_flash, false},
};

bool ms_scores_has_kernel(const ms_trace *trace, const ms_scores *how)
{
    return variants[how->code].has_kernel(trace->kernels.attention, how);
}

/* ---- attention ----------------------------------------------------------- */

/* q k^T */
static uint32_t multiply(ms_trace *trace, const ms_scores *how, uint32_t q,
                         uint32_t keys, uint32_t alibi)
{
    if (!variants[how->code].adds_slopes || trace->err)
        return ms_matmul_batched(trace, q, keys);
    int64_t batch = at(trace, q)->size[0];
    uint32_t bias = ms_view_expand(trace, alibi, 0, batch);
    uint32_t y = ms_matmul_batched_onto(trace, bias, q, keys);
    ms_trace_drop(trace, bias);
    return y;
}

/* Korthikanti et al. count the fused scale-mask-softmax of Megatron. */
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
    if (how->bias != MS_NONE)
        a = weights_biased(trace, how, a);
    else if (trace->settings->training->kernels == MS_KORTHIKANTI)
        a = step(trace, a, ms_norm_softmax(trace, a));
    else
        a = variants[how->code].weights(trace, how, a, alibi);
    if (alibi != MS_NONE)
        ms_trace_drop(trace, alibi);
    a = step(trace, a, ms_pointwise_dropout(trace, a, how->dropout));
    trace->op_flags &= (uint8_t)~MS_OP_CORE;
    uint32_t y = ms_matmul_batched(trace, a, qkv[2]);
    ms_trace_drop(trace, a);
    return y;
}
