/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Losses: each gives a scalar. */
#include "graphs/ops/autocast.h"
#include "graphs/ops/ops.h"
#include "graphs/trace/opend.h"
#include "graphs/trace/trace.h"

#include <string.h>

#define SECTOR 32u /* bytes that a load of one number moves */

static uint32_t scalar(ms_trace *trace, const char *role, uint8_t dtype)
{
    return ms_trace_make(trace, role, dtype, 0, (const int64_t[]){0});
}

/* One kernel from the incoming gradient and the first saved tensor. */
static void one_kernel(ms_trace *trace, const ms_node *node,
                       const uint32_t *grads, uint32_t *out)
{
    ms_trace_begin(trace, node->rule->op);
    ms_trace_read(trace, grads[0]);
    if (node->n_saved)
        ms_trace_read(trace, node->saved[0]);
    out[0] = ms_trace_make_like(trace, "grad", node->input[0]);
    ms_trace_end(trace, 2 * ms_trace_count(trace, node->input[0]), false);
}

/* ---- cross entropy ------------------------------------------------------- */

static void log_softmax_backward(ms_trace *trace, const ms_node *node,
                                 const uint32_t *grads, uint32_t *out)
{
    uint32_t x = node->input[0];
    ms_trace_begin(trace, node->rule->op);
    ms_trace_read(trace, grads[0]);
    ms_trace_read(trace, node->saved[0]);
    out[0] = ms_trace_make_like(trace, "grad", x);
    ms_opend_rows(trace, 2 * ms_trace_count(trace, x), x, MS_WORK_ROWS_LOG);
}

/* Zeros, and a number in each row: of the log-probabilities only their shape
 * is looked at (ATen/native/cuda/Loss.cu). */
static void nll_loss_backward(ms_trace *trace, const ms_node *node,
                              const uint32_t *grads, uint32_t *out)
{
    ms_trace_begin(trace, node->rule->op);
    ms_trace_read(trace, grads[0]);
    if (!trace->err)
        ms_trace_read_storage(trace,
                              ms_trace_at(trace, node->saved[0])->storage, 0);
    out[0] = ms_trace_make_like(trace, "grad", node->input[0]);
    ms_trace_end(trace, 2 * ms_trace_count(trace, node->input[0]), false);
}

const ms_rule ms_loss_log_softmax_rule = {"LogSoftmaxBackward0",
                                          "aten::_log_softmax_backward_data",
                                          log_softmax_backward};
const ms_rule ms_loss_nll_loss_rule = {
    "NllLossBackward0", "aten::nll_loss_backward", nll_loss_backward};

/* nll_loss saves the log-probabilities (without autocast the storage that
 * log_softmax saves too), the target and the total weight. */
static uint32_t nll_loss(ms_trace *trace, uint32_t half_probs, uint32_t target)
{
    uint32_t log_probs =
        ms_autocast_input(trace, "nll_loss_forward", half_probs);
    if (log_probs == MS_NONE)
        return MS_NONE;
    uint8_t dtype = ms_trace_at(trace, log_probs)->dtype;
    ms_trace_begin(trace, "aten::nll_loss_forward");
    ms_trace_read_storage(trace, ms_trace_at(trace, log_probs)->storage,
                          SECTOR *
                              ms_trace_elements(ms_trace_at(trace, target)));
    ms_trace_read(trace, target);
    uint32_t loss = scalar(trace, "loss", dtype);
    uint32_t total = scalar(trace, "total_weight", dtype);
    ms_trace_end(trace, 0, false);
    uint32_t n =
        ms_trace_node(trace, &ms_loss_nll_loss_rule, &log_probs, 1, &loss, 1);
    ms_trace_save(trace, n, log_probs);
    ms_trace_save(trace, n, target);
    ms_trace_save(trace, n, total);
    ms_trace_drop(trace, total);
    ms_trace_drop(trace, log_probs);
    return loss;
}

bool ms_loss_is_image(const ms_tensor *logits)
{
    return logits->n_dims > 3;
}

/* cross_entropy_loss asks log_softmax for the dtype of the logits
 * (ATen/native/LossNLL.cpp), which autocast leaves as it is told: the
 * log-probabilities are as wide as the logits, and nll_loss casts them to
 * fp32.  Recorded so under bf16 and fp16 (PyTorch 2.11 on an H100). */
static uint32_t log_softmax(ms_trace *trace, uint32_t rows)
{
    if (trace->err || rows == MS_NONE)
        return MS_NONE;
    ms_trace_begin(trace, "aten::_log_softmax");
    ms_trace_read(trace, rows);
    uint32_t log_probs = ms_trace_make_like(trace, "log_probs", rows);
    ms_opend_rows(trace, 5 * ms_trace_count(trace, rows), rows,
                  MS_WORK_ROWS_LOG);
    uint32_t n = ms_trace_node(trace, &ms_loss_log_softmax_rule, &rows, 1,
                               &log_probs, 1);
    ms_trace_save(trace, n, log_probs);
    return log_probs;
}

/* nll_loss2d, of images, differs in its name only. */
uint32_t ms_loss_cross_entropy(ms_trace *trace, uint32_t logits,
                               uint32_t target)
{
    if (trace->err)
        return MS_NONE;
    bool image = ms_loss_is_image(ms_trace_at(trace, logits));
    uint32_t rows = image ? logits : ms_view_rows(trace, logits);
    if (image)
        ms_trace_ref(trace, rows);
    uint32_t log_probs = log_softmax(trace, rows);
    ms_trace_drop(trace, rows);
    uint32_t loss = nll_loss(trace, log_probs, target);
    ms_trace_drop(trace, log_probs);
    return loss;
}

/* Megatron core/tensor_parallel/cross_entropy.py: the fp32 softmax is saved,
 * a mask and an index per row; the gradient is computed in place of the
 * softmax and cast to the dtype of the logits.  Korthikanti et al. count the
 * softmax only. */
static const ms_rule fused_rule = {"VocabParallelCrossEntropyBackward",
                                   "vocab_parallel_cross_entropy_backward",
                                   one_kernel};

uint32_t ms_loss_fused_cross_entropy(ms_trace *trace, uint32_t logits,
                                     uint32_t target)
{
    uint32_t rows = ms_view_rows(trace, logits);
    if (trace->err)
        return MS_NONE;
    int64_t dims[2];
    memcpy(dims, ms_trace_at(trace, rows)->size, sizeof dims);
    ms_trace_begin(trace, "vocab_parallel_cross_entropy");
    ms_trace_read(trace, rows);
    ms_trace_read(trace, target);
    uint32_t n_saved = trace->kernels.saves_softmax_alone ? 1 : 3;
    uint32_t saved[3] = {ms_trace_make(trace, "softmax", MS_FLOAT32, 2, dims)};
    if (n_saved > 1) {
        saved[1] = ms_trace_make(trace, "mask", MS_BYTE, 1, dims);
        saved[2] = ms_trace_make(trace, "index", MS_INT64, 1, dims);
    }
    uint32_t loss = scalar(trace, "loss", MS_FLOAT32);
    const ms_kernel_hooks *hooks = trace->kernels.hooks;
    uint32_t others[MS_LOSS_TEMPORARIES];
    uint32_t n_others = hooks->loss_temporaries
                            ? hooks->loss_temporaries(trace, dims, others)
                            : 0;
    ms_trace_end(trace, 5 * ms_trace_count(trace, rows), false);
    ms_split_drop(trace, n_others, others);
    uint32_t n = ms_trace_node(trace, &fused_rule, &rows, 1, &loss, 1);
    for (uint32_t i = 0; i < n_saved && !trace->err; i++) {
        ms_trace_save(trace, n, saved[i]);
        ms_trace_drop(trace, saved[i]);
    }
    ms_trace_drop(trace, rows);
    return loss;
}

/* ---- label smoothing ----------------------------------------------------- */

/* One kernel that makes a tensor with one value for each row of x, and its
 * node. */
static uint32_t per_row(ms_trace *trace, const char *op, const ms_rule *rule,
                        uint32_t x, int64_t rows)
{
    if (trace->err)
        return MS_NONE;
    ms_trace_begin(trace, op);
    ms_trace_read(trace, x);
    uint8_t dtype = ms_autocast_dtype(trace, op + strlen("aten::"),
                                      ms_trace_at(trace, x)->dtype);
    uint32_t y = ms_trace_make(trace, "smooth", dtype, 1, &rows);
    ms_trace_end(trace, ms_trace_count(trace, x), false);
    ms_trace_node(trace, rule, &x, 1, &y, 1);
    return y;
}

static uint32_t mask_of(ms_trace *trace, const char *op, int64_t rows)
{
    ms_trace_begin(trace, op);
    uint32_t y = ms_trace_make(trace, "mask", MS_BYTE, 1, &rows);
    ms_trace_end(trace, 0, false);
    return y;
}

/* smooth_loss[target == ignore_index] = 0, in place. */
static const ms_rule ignore_rule = {"IndexPutBackward0", "aten::index_put",
                                    one_kernel};
static const ms_rule choose_rule = {"MaskedSelectBackward0",
                                    "aten::masked_scatter", one_kernel};
static const ms_rule part_rule = {"MulBackward0", "aten::mul", one_kernel};

/* A loss times a number, which is no tensor: nothing is saved. */
static uint32_t part(ms_trace *trace, uint32_t loss)
{
    ms_trace_begin(trace, "aten::mul");
    ms_trace_read(trace, loss);
    uint32_t y = trace->err ? MS_NONE : ms_trace_make_like(trace, "loss", loss);
    ms_trace_end(trace, 1, false);
    ms_trace_node(trace, &part_rule, &loss, 1, &y, 1);
    return y;
}

/* -log_probs.sum(-1), averaged over the rows that are not ignored. */
static uint32_t smooth_loss(ms_trace *trace, uint32_t log_probs)
{
    if (trace->err)
        return MS_NONE;
    int64_t rows = ms_trace_at(trace, log_probs)->size[0];
    uint32_t sum =
        per_row(trace, "aten::sum", &ms_view_sum_rule, log_probs, rows);
    if (!trace->err && ms_trace_needs(trace, sum))
        trace->nodes[trace->n_nodes - 1].i[0] = 2; /* dimension 1 */
    uint32_t negative = ms_pointwise_negative(trace, sum);
    ms_trace_drop(trace, sum);
    uint32_t mask = mask_of(trace, "aten::eq", rows);
    uint32_t kept = ms_trace_alias(trace, negative);
    if (kept == MS_NONE)
        return MS_NONE;
    ms_trace_at(trace, kept)->view = false;
    uint32_t n = ms_trace_node(trace, &ignore_rule, &negative, 1, &kept, 1);
    ms_trace_save(trace, n, mask);
    ms_trace_drop(trace, negative);
    ms_trace_drop(trace, mask);
    mask = mask_of(trace, "aten::bitwise_not", rows);
    uint32_t chosen =
        per_row(trace, "aten::masked_select", &choose_rule, kept, rows);
    if (ms_trace_needs(trace, kept)) {
        ms_trace_save(trace, trace->n_nodes - 1, kept);
        ms_trace_save(trace, trace->n_nodes - 1, mask);
    }
    ms_trace_drop(trace, kept);
    ms_trace_drop(trace, mask);
    uint32_t loss = ms_loss_mean(trace, chosen);
    ms_trace_drop(trace, chosen);
    return loss;
}

uint32_t ms_loss_smoothed_cross_entropy(ms_trace *trace, uint32_t logits,
                                        uint32_t target)
{
    uint32_t rows = ms_view_rows(trace, logits), both[2], scaled[2];
    uint32_t log_probs = log_softmax(trace, rows);
    both[0] = nll_loss(trace, log_probs, target);
    both[1] = smooth_loss(trace, log_probs);
    ms_trace_drop(trace, rows);
    ms_trace_drop(trace, log_probs);
    for (uint32_t i = 0; i < 2; i++) {
        scaled[i] = part(trace, both[i]);
        ms_trace_drop(trace, both[i]);
    }
    uint32_t loss = ms_pointwise_add(trace, scaled[0], scaled[1]);
    for (uint32_t i = 0; i < 2; i++)
        ms_trace_drop(trace, scaled[i]);
    return loss;
}

/* ---- mean ---------------------------------------------------------------- */

const ms_rule ms_loss_mean_rule = {"MeanBackward0", "aten::div", one_kernel};

uint32_t ms_loss_mean(ms_trace *trace, uint32_t x)
{
    if (trace->err)
        return MS_NONE;
    uint8_t dtype = ms_trace_at(trace, x)->dtype;
    ms_trace_begin(trace, "aten::mean");
    ms_trace_read(trace, x);
    uint32_t loss = scalar(trace, "loss", dtype);
    ms_scratch_reduce(trace, x, MS_ALL_DIMS, sizeof(float));
    ms_trace_end(trace, ms_trace_count(trace, x), false);
    ms_trace_node(trace, &ms_loss_mean_rule, &x, 1, &loss, 1);
    return loss;
}
