/* SPDX-License-Identifier: GPL-3.0-or-later */
/* FlashAttention-2 (Dao 2023; csrc/flash_attn/flash_api.cpp): saves q, k, v,
 * the output, the row-wise log-sum-exp in fp32 and the random state; backward
 * makes dq, dk, dv and, while it runs, softmax_d [b, a, s'] and dq_accum
 * [b, s', a, d'] in fp32, s' = s rounded up to 128 and d' = d to 32.  Where it
 * is deterministic it has dq_accum as many times as fill the device with b a
 * blocks, and sums these at the end.  With fewer heads in k and v, dk and dv
 * are computed for all of q's heads first and then summed. */
#include "graphs/ops/autocast.h"
#include "graphs/ops/ops.h"
#include "graphs/trace/opend.h"
#include "graphs/trace/trace.h"

/* Makes a tensor like q with the channels of v; its physical layout is [batch,
 * sequence, heads, dim]. */
static uint32_t like_heads(ms_trace *trace, uint32_t q, uint32_t v,
                           const char *role)
{
    if (trace->err)
        return MS_NONE;
    const ms_tensor *x = ms_trace_at(trace, q);
    int64_t dims[4] = {x->size[0], x->size[2], x->size[1],
                       ms_trace_at(trace, v)->size[3]};
    uint32_t made = ms_trace_make(trace, role, x->dtype, 4, dims);
    uint32_t y = ms_view_transpose(trace, made, 1, 2);
    ms_trace_drop(trace, made);
    if (y != MS_NONE)
        ms_trace_at(trace, y)->view = false;
    return y;
}

/* mha_bwd's nsplits. */
static int64_t dq_parts(const ms_trace *trace, const ms_tensor *q)
{
    int64_t blocks = q->size[0] * q->size[1];
    int64_t fill = trace->settings->device->multiprocessors;
    return trace->kernels.sums_in_order ? (fill + blocks - 1) / blocks : 1;
}

void ms_attention_sums(ms_trace *trace, uint32_t q, int64_t queries,
                       uint32_t sums[2])
{
    if (trace->err)
        return;
    const ms_tensor *x = ms_trace_at(trace, q);
    int64_t rows = (queries + 127) / 128 * 128;
    int64_t statistics[3] = {x->size[0], x->size[1], rows};
    int64_t parts[5] = {dq_parts(trace, x), x->size[0], rows, x->size[1],
                        (x->size[3] + 31) / 32 * 32};
    sums[0] = ms_trace_make(trace, "softmax_d", MS_FLOAT32, 3, statistics);
    sums[1] = ms_trace_make(trace, "dq_accum", MS_FLOAT32, 5, parts);
}

static void flash_backward(ms_trace *trace, const ms_node *node,
                           const uint32_t *grads, uint32_t *out)
{
    const ms_tensor *q = ms_trace_at(trace, node->input[0]);
    int64_t heads = q->size[1], queries = q->size[2];
    uint32_t sums[2] = {MS_NONE, MS_NONE};
    ms_trace_begin_backward(trace, node, grads[0]);
    for (uint32_t i = 0; i < 3; i++)
        out[i] = like_heads(trace, node->input[i], node->input[i], "grad");
    uint32_t all[2] = {MS_NONE, MS_NONE};
    if (ms_trace_at(trace, node->input[1])->size[1] != heads)
        for (uint32_t i = 0; i < 2; i++)
            all[i] = like_heads(trace, node->input[0], node->input[i + 1],
                                "grad_all_heads");
    ms_attention_sums(trace, node->input[0], queries, sums);
    ms_opend_attention(trace, MS_WORK_FLASH, node->input[0], node->flops, true);
    ms_trace_drop(trace, sums[0]);
    ms_trace_drop(trace, sums[1]);
    ms_trace_drop(trace, all[0]);
    ms_trace_drop(trace, all[1]);
}

const ms_rule ms_attention_flash_rule = {
    "ScaledDotProductFlashAttentionBackward0",
    "aten::_scaled_dot_product_flash_attention_backward", flash_backward};

/* The FLOPs of all pairs of a query and a key, with two products over the
 * channels for each: its score and its share of the output.  A causal query
 * sees the keys before it, half of them on average, or those of a window. */
static double flops_of(const ms_trace *trace, const uint32_t *inputs,
                       ms_attended attended)
{
    const ms_tensor *q = ms_trace_at(trace, inputs[0]);
    double keys = (double)ms_trace_at(trace, inputs[1])->size[2];
    double queries = (double)q->size[2], window = (double)attended.window;
    double channels =
        (double)q->size[3] + (double)ms_trace_at(trace, inputs[2])->size[3];
    double pairs = queries * keys * (attended.causal ? 0.5 : 1);
    if (attended.window > 0 && window < keys)
        pairs = queries * window - window * window / 2;
    return 2 * (double)q->size[0] * (double)q->size[1] * pairs * channels;
}

/* The order of the outputs and saves is that of the extension: the log-sum-exp
 * and the random state are made after the output, and only the node keeps them.
 */
static uint32_t flash(ms_trace *trace, const uint32_t *inputs,
                      ms_attended attended)
{
    if (trace->err)
        return MS_NONE;
    const ms_tensor *x = ms_trace_at(trace, inputs[0]);
    int64_t rows[3] = {x->size[0], x->size[1], x->size[2]};
    double flops = flops_of(trace, inputs, attended);
    ms_trace_begin(trace, "aten::_scaled_dot_product_flash_attention");
    for (uint32_t i = 0; i < 3; i++)
        ms_trace_read(trace, inputs[i]);
    uint32_t y = like_heads(trace, inputs[0], inputs[2], "out");
    uint32_t lse = ms_trace_make(trace, "logsumexp", MS_FLOAT32, 3, rows);
    uint32_t rng =
        ms_trace_make(trace, "rng_state", MS_INT64, 1, (const int64_t[]){2});
    ms_opend_attention(trace, MS_WORK_FLASH, inputs[0], flops, false);
    uint32_t n =
        ms_trace_node(trace, &ms_attention_flash_rule, inputs, 3, &y, 1);
    if (n != MS_NONE)
        trace->nodes[n].flops = flops;
    for (uint32_t i = 0; i < 3; i++)
        ms_trace_save(trace, n, inputs[i]);
    ms_trace_save(trace, n, y);
    ms_trace_save(trace, n, lse);
    ms_trace_save(trace, n, rng);
    ms_trace_drop(trace, lse);
    ms_trace_drop(trace, rng);
    return y;
}

uint32_t ms_attention_flash(ms_trace *trace, uint32_t q, uint32_t k, uint32_t v,
                            ms_attended attended)
{
    const uint32_t inputs[3] = {q, k, v};
    uint32_t in[3];
    ms_autocast_enter(trace, "scaled_dot_product_attention", 3, inputs, in);
    uint32_t y = flash(trace, in, attended);
    ms_autocast_exit(trace, 3, in);
    return y;
}

/* ---- memory-efficient attention ------------------------------------------ */

/* xFormers' kernel as PyTorch has it (aten/src/ATen/native/transformers/cuda/
 * attention.cu): saves q, k, v, the output, the row-wise log-sum-exp in fp32
 * over the sequence rounded up to 32, seed and offset; backward makes dq, dk,
 * dv and, while it runs, delta [b, a, s] in fp32. */
static void efficient_backward(ms_trace *trace, const ms_node *node,
                               const uint32_t *grads, uint32_t *out)
{
    const ms_tensor *q = ms_trace_at(trace, node->input[0]);
    int64_t rows[3] = {q->size[0], q->size[1], q->size[2]};
    ms_trace_begin_backward(trace, node, grads[0]);
    for (uint32_t i = 0; i < 3; i++)
        out[i] = like_heads(trace, node->input[i], node->input[i], "grad");
    uint32_t delta = ms_trace_make(trace, "delta", MS_FLOAT32, 3, rows);
    ms_opend_attention(trace, MS_WORK_EFFICIENT, node->input[0], node->flops,
                       true);
    ms_trace_drop(trace, delta);
}

static const ms_rule efficient_rule = {
    "ScaledDotProductEfficientAttentionBackward0",
    "aten::_scaled_dot_product_efficient_attention_backward",
    efficient_backward};

/* What the op makes besides the output lives only as long as its node saves it.
 */
static uint32_t efficient(ms_trace *trace, const uint32_t *inputs,
                          ms_attended attended)
{
    uint32_t own[4];
    if (trace->err)
        return MS_NONE;
    ms_tensor x = *ms_trace_at(trace, inputs[0]);
    int64_t rows[3] = {x.size[0], x.size[1], (x.size[2] + 31) / 32 * 32};
    double flops = flops_of(trace, inputs, attended);
    ms_trace_begin(trace, "aten::_scaled_dot_product_efficient_attention");
    for (uint32_t i = 0; i < 3; i++)
        ms_trace_read(trace, inputs[i]);
    own[0] = like_heads(trace, inputs[0], inputs[2], "out");
    own[1] = ms_trace_make(trace, "logsumexp", MS_FLOAT32, 3, rows);
    own[2] = ms_trace_make(trace, "seed", MS_INT64, 0, rows);
    own[3] = ms_trace_make(trace, "offset", MS_INT64, 0, rows);
    ms_opend_attention(trace, MS_WORK_EFFICIENT, inputs[0], flops, false);
    uint32_t n = ms_trace_node(trace, &efficient_rule, inputs, 3, own, 1);
    if (n != MS_NONE)
        trace->nodes[n].flops = flops;
    for (uint32_t i = 0; i < 3; i++)
        ms_trace_save(trace, n, inputs[i]);
    for (uint32_t i = 0; i < 4 && !trace->err; i++)
        ms_trace_save(trace, n, own[i]);
    for (uint32_t i = 1; i < 4; i++)
        ms_trace_drop(trace, own[i]);
    return own[0];
}

uint32_t ms_attention_efficient(ms_trace *trace, uint32_t q, uint32_t k,
                                uint32_t v, ms_attended attended)
{
    const uint32_t inputs[3] = {q, k, v};
    uint32_t in[3];
    ms_autocast_enter(trace, "scaled_dot_product_attention", 3, inputs, in);
    uint32_t y = efficient(trace, in, attended);
    ms_autocast_exit(trace, 3, in);
    return y;
}
