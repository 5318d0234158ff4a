/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/layers/experts/balance.h"
#include "graphs/ops/ops.h"
#include "graphs/trace/opend.h"

/* ---- a loss that goes along ---------------------------------------------- */

enum { TENSOR, LOSS };

static void along_backward(ms_trace *trace, const ms_node *node,
                           const uint32_t *grads, uint32_t *out)
{
    ms_trace_ref(trace, grads[0]);
    out[TENSOR] = grads[0];
    if (!node->needs[LOSS])
        return;
    ms_trace_begin(trace, "aten::mul"); /* ones_like(loss) * scale */
    ms_trace_read(trace, node->saved[0]);
    out[LOSS] = trace->err ? MS_NONE
                           : ms_trace_make_like(trace, "grad", node->saved[0]);
    ms_trace_end(trace, 1, false);
}

static const ms_rule along_rule = {"MoEAuxLossAutoScalerBackward", NULL,
                                   along_backward};

/* x and the loss are used up. */
static uint32_t with_loss(ms_trace *trace, uint32_t x, uint32_t loss)
{
    const uint32_t in[2] = {x, loss};
    if (trace->err)
        return MS_NONE;
    uint32_t y = ms_trace_alias(trace, x);
    uint32_t n = ms_trace_node(trace, &along_rule, in, 2, &y, 1);
    ms_trace_save(trace, n, loss);
    ms_trace_drop(trace, loss);
    return ms_trace_rebind(trace, x, y);
}

/* The mean of x, which is used up, times the coefficient. */
static uint32_t mean_of(ms_trace *trace, uint32_t x)
{
    x = ms_trace_rebind(trace, x, ms_reduce_mean(trace, x, 1));
    return ms_trace_rebind(trace, x, ms_pointwise_mul_scalar(trace, x));
}

/* ---- load balancing ------------------------------------------------------ */

/* How many tokens choose each expert: no gradient. */
static uint32_t count(ms_trace *trace, uint32_t scores, int64_t chosen)
{
    if (trace->err)
        return MS_NONE;
    ms_tensor all = *ms_trace_at(trace, scores);
    const int64_t best[2] = {all.size[0], chosen};
    ms_trace_begin(trace, "aten::topk");
    ms_trace_read(trace, scores);
    uint32_t values = ms_trace_make(trace, "best", all.dtype, 2, best);
    uint32_t which = ms_trace_make(trace, "indices", MS_INT64, 2, best);
    ms_trace_end(trace, ms_trace_count(trace, scores), false);
    ms_trace_begin(trace, "aten::bincount");
    ms_trace_read(trace, which);
    uint32_t n =
        ms_trace_make(trace, "tokens_per_expert", MS_FLOAT32, 1, &all.size[1]);
    ms_trace_end(trace, 0, false);
    ms_trace_drop(trace, values);
    ms_trace_drop(trace, which);
    return n;
}

static void sum_backward(ms_trace *trace, const ms_node *node,
                         const uint32_t *grads, uint32_t *out)
{
    if (trace->err)
        return;
    const ms_tensor *x = ms_trace_at(trace, node->input[0]);
    const int64_t row[2] = {1, x->size[1]};
    int64_t tokens = x->size[0];
    uint32_t view = ms_view_reshape(trace, grads[0], 2, row);
    out[0] = ms_view_expand(trace, view, 0, tokens);
    ms_trace_drop(trace, view);
}

static const ms_rule sum_rule = {"SumBackward1", NULL, sum_backward};

/* x.sum(dim=0) */
static uint32_t sum_of_tokens(ms_trace *trace, uint32_t x)
{
    if (trace->err)
        return MS_NONE;
    ms_tensor all = *ms_trace_at(trace, x);
    ms_trace_begin(trace, "aten::sum");
    ms_trace_read(trace, x);
    uint32_t y = ms_trace_make(trace, "sum", all.dtype, 1, &all.size[1]);
    ms_trace_end(trace, ms_trace_count(trace, x), false);
    ms_trace_node(trace, &sum_rule, &x, 1, &y, 1);
    return y;
}

uint32_t ms_balance_aux_loss(ms_trace *trace, uint32_t logits, uint32_t p,
                             int64_t chosen)
{
    uint32_t scores = ms_cast_to(trace, logits, MS_FLOAT32);
    scores = ms_trace_rebind(trace, scores, ms_norm_softmax(trace, scores));
    uint32_t n = count(trace, scores, chosen);
    uint32_t share = sum_of_tokens(trace, scores);
    ms_trace_drop(trace, scores);
    uint32_t product = ms_pointwise_mul(trace, share, n);
    ms_trace_drop(trace, share);
    ms_trace_drop(trace, n);
    return with_loss(trace, p, mean_of(trace, product));
}

/* ---- small logits -------------------------------------------------------- */

/* grad * exp(logits - sums) */
static void sums_backward(ms_trace *trace, const ms_node *node,
                          const uint32_t *grads, uint32_t *out)
{
    ms_trace_begin_backward(trace, node, grads[0]);
    out[0] = trace->err ? MS_NONE
                        : ms_trace_make_like(trace, "grad", node->input[0]);
    ms_trace_end(trace, 3 * ms_trace_count(trace, node->input[0]), false);
}

static const ms_rule sums_rule = {"LogsumexpBackward0",
                                  "aten::logsumexp_backward", sums_backward};

static uint32_t sums_of(ms_trace *trace, uint32_t logits)
{
    if (trace->err)
        return MS_NONE;
    ms_tensor all = *ms_trace_at(trace, logits);
    ms_trace_begin(trace, "aten::logsumexp");
    ms_trace_read(trace, logits);
    uint32_t y = ms_trace_make(trace, "out", all.dtype, 1, &all.size[0]);
    ms_opend_rows(trace, 3 * ms_trace_count(trace, logits), logits,
                  MS_WORK_ROWS);
    uint32_t n = ms_trace_node(trace, &sums_rule, &logits, 1, &y, 1);
    ms_trace_save(trace, n, logits);
    ms_trace_save(trace, n, y);
    return y;
}

uint32_t ms_balance_z_loss(ms_trace *trace, uint32_t logits)
{
    uint32_t z = sums_of(trace, logits);
    z = ms_trace_rebind(trace, z, ms_pointwise_pow(trace, z));
    return with_loss(trace, logits, mean_of(trace, z));
}
