/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Losses that compute their gradients in forward (Liger Kernel;
 * graphs/autograd.md 20).  Backward takes over what forward made: the node
 * keeps the reference and returns it as the gradient. */
#include "graphs/formats/precisions.h"
#include "graphs/ops/ops.h"
#include "graphs/trace/opend.h"
#include "graphs/trace/savedends.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

/* The gradient of the loss is 1 but where a loop divides it by its
 * micro-batches or a scaler of fp16 multiplies it; then Liger only looks
 * (linkedin/Liger-Kernel, ops/cross_entropy.py, cross_entropy_backward). */
static bool scales(const ms_trace *trace)
{
    const ms_step_settings *settings = trace->settings;
    const ms_precision_row *row = ms_precisions_of(settings->training);
    return settings->micro_batches > 1 || trace->weight_dtype == MS_FLOAT16 ||
           row->autocast == MS_FLOAT16;
}

/* The gradients exist since forward, one for each input in the order saved;
 * backward only scales them in place. */
static void hand_over_grads(ms_trace *trace, const ms_node *node,
                            const uint32_t *grads, uint32_t *out)
{
    ms_trace_begin(trace, node->rule->op);
    ms_trace_read(trace, grads[0]);
    for (uint32_t i = 0; i < node->n_inputs && scales(trace); i++)
        ms_trace_read(trace, node->saved[i]);
    ms_trace_end(trace, 0, false);
    ms_savedends_give(trace, node, out);
}

static const ms_rule in_place_rule = {"LigerCrossEntropyBackward",
                                      "element_mul", hand_over_grads};
static const ms_rule linear_rule = {"LigerFusedLinearCrossEntropyBackward",
                                    "element_mul", hand_over_grads};

/* Takes over what forward made: the node saves it, or it is dropped where no
 * gradient is needed. */
static void keep_grads(ms_trace *trace, const ms_rule *rule,
                       const uint32_t *inputs, const uint32_t *made, uint32_t n,
                       const uint32_t *loss)
{
    uint32_t node = ms_trace_node(trace, rule, inputs, n, loss, 1);
    for (uint32_t i = 0; i < n && !trace->err; i++)
        ms_trace_save(trace, node, made[i]);
    ms_savedends_hold(trace, node);
    for (uint32_t i = 0; i < n && !trace->err; i++)
        ms_trace_drop(trace, made[i]);
}

/* Makes loss_1d [rows] in fp32 and its sum. */
static uint32_t sum_of_losses(ms_trace *trace, int64_t rows, uint8_t dtype)
{
    uint32_t each = ms_trace_make(trace, "losses", MS_FLOAT32, 1, &rows);
    uint32_t loss =
        ms_trace_make(trace, "loss", dtype, 0, (const int64_t[]){0});
    ms_trace_drop(trace, each);
    return loss;
}

uint32_t ms_chunkedloss_in_place(ms_trace *trace, uint32_t logits,
                                 uint32_t target)
{
    uint32_t rows = ms_view_rows(trace, logits);
    if (trace->err)
        return MS_NONE;
    ms_tensor x = *ms_trace_at(trace, rows);
    ms_trace_begin(trace, "liger_cross_entropy");
    ms_trace_read(trace, rows);
    ms_trace_read(trace, target);
    trace->graph->op_write_bytes[trace->graph->n_ops - 1] += ms_trace_bytes(&x);
    uint32_t loss = sum_of_losses(trace, x.size[0], x.dtype);
    ms_trace_end(trace, 7 * ms_trace_count(trace, rows), false);
    keep_grads(trace, &in_place_rule, &rows, &rows, 1, &loss);
    return loss;
}

/* ---- head and loss ------------------------------------------------------- */

/* Rows of a chunk, a power of two: Liger makes as many chunks as the vocabulary
 * is wider than x, so that the logits of one are about as large as x
 * (fused_linear_cross_entropy.py). */
static int64_t rows_per_chunk(int64_t rows, int64_t width, int64_t vocab)
{
    int64_t parts = (vocab + width - 1) / width;
    int64_t want = (rows + parts - 1) / parts, chunk = 1;
    while (chunk < want)
        chunk *= 2;
    return chunk;
}

/* Runs one chunk: the logits x W^T, then their loss and gradient in place, then
 * their part of both gradients.  The Python variable keeps the logits of the
 * chunk before until it is bound to the new ones, so two chunks of logits live
 * at once. */
static uint32_t run_chunk(ms_trace *trace, uint32_t x, uint32_t weight,
                          uint32_t target, const uint32_t *made, uint32_t n,
                          int64_t rows, uint32_t old)
{
    const ms_tensor *w = ms_trace_at(trace, weight);
    int64_t dims[2] = {rows, w->size[0]};
    uint8_t dtype = w->dtype;
    double flops = 2 * (double)rows * (double)ms_trace_elements(w);
    ms_trace_begin(trace, "aten::mm");
    ms_trace_read(trace, x);
    ms_trace_read(trace, weight);
    uint32_t logits = ms_trace_make(trace, "logits", dtype, 2, dims);
    ms_opend_product(trace, flops, logits);
    ms_trace_drop(trace, old);
    ms_trace_begin(trace, "liger_cross_entropy");
    ms_trace_read(trace, logits);
    ms_trace_read(trace, target);
    ms_trace_end(trace, 7 * ms_trace_count(trace, logits), false);
    for (uint32_t i = 0; i < n && !trace->err; i++) {
        ms_trace_begin(trace, i == 0 ? "aten::mm" : "aten::addmm");
        ms_trace_read(trace, logits);
        ms_trace_read(trace, i == 0 ? weight : x);
        ms_trace_read(trace, made[i]);
        ms_opend_product(trace, flops, i == 0 ? logits : made[i]);
    }
    return logits;
}

/* Both gradients exist before the first chunk, as each chunk adds its part to
 * them (fused_linear_cross_entropy.py).  What no gradient is needed of has
 * none: a frozen weight. */
uint32_t ms_chunkedloss_linear(ms_trace *trace, uint32_t x, uint32_t weight,
                               uint32_t target)
{
    uint32_t rows = ms_view_rows(trace, x), logits = MS_NONE;
    if (trace->err)
        return MS_NONE;
    ms_tensor all = *ms_trace_at(trace, rows);
    int64_t chunk = rows_per_chunk(all.size[0], all.size[1],
                                   ms_trace_at(trace, weight)->size[0]);
    uint32_t inputs[2] = {rows, weight}, made[2];
    uint32_t n =
        ms_trace_needs(trace, weight) || !trace->settings->train ? 2 : 1;
    ms_trace_begin(trace, "aten::zeros_like");
    made[0] = ms_trace_make_like(trace, "grad_input", rows);
    if (n > 1)
        made[1] = ms_trace_make_like(trace, "grad_weight", weight);
    uint32_t loss = sum_of_losses(trace, all.size[0], all.dtype);
    ms_trace_end(trace, 0, false);
    for (int64_t at = 0; at < all.size[0] && !trace->err; at += chunk) {
        int64_t left = all.size[0] - at;
        logits = run_chunk(trace, rows, weight, target, made, n,
                           left < chunk ? left : chunk, logits);
    }
    ms_trace_drop(trace, logits);
    if (!trace->err)
        keep_grads(trace, &linear_rule, inputs, made, n, &loss);
    ms_trace_drop(trace, rows);
    return loss;
}
