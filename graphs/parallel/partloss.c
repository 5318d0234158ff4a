/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/parallel/partloss.h"
#include "graphs/ops/ops.h"
#include "graphs/parallel/tensorops.h"
#include "graphs/trace/trace.h"

/* An op over x and, where it is one, y, which makes a tensor like x, or with
 * one value a row. */
static uint32_t run(ms_trace *trace, const char *op, uint32_t x, uint32_t y,
                    bool by_row)
{
    if (trace->err)
        return MS_NONE;
    ms_tensor like = *ms_trace_at(trace, x);
    ms_trace_begin(trace, op);
    ms_trace_read(trace, x);
    ms_trace_read(trace, y);
    uint32_t made = ms_trace_make(trace, by_row ? "statistics" : "out",
                                  like.dtype, by_row ? 1 : 2, like.size);
    ms_trace_end(trace, ms_trace_count(trace, x), false);
    return made;
}

/* One value a row, of all ranks. */
static uint32_t reduce(ms_trace *trace, const char *op, uint32_t x)
{
    uint32_t y = run(trace, op, x, MS_NONE, true);
    ms_tensorops_sum(trace, y);
    return y;
}

/* (grad_input + exp(log_probs)) * grad_output */
static void backward(ms_trace *trace, const ms_node *node,
                     const uint32_t *grads, uint32_t *out)
{
    uint32_t log_probs = node->saved[0];
    if (trace->err)
        return;
    ms_tensor like = *ms_trace_at(trace, log_probs);
    ms_trace_begin(trace, "aten::zeros_like");
    uint32_t zeros = ms_trace_make(trace, "zeros", like.dtype, 2, like.size);
    ms_trace_end(trace, 0, false);
    uint32_t exp = run(trace, "aten::exp", log_probs, MS_NONE, false);
    uint32_t sum = run(trace, "aten::add", zeros, exp, false);
    ms_trace_drop(trace, exp);
    out[0] = run(trace, "aten::mul", sum, grads[0], false);
    ms_trace_drop(trace, sum);
    ms_trace_drop(trace, zeros);
}

static const ms_rule rule = {"LossParallelBackward", NULL, backward};

uint32_t ms_partloss_cross_entropy(ms_trace *trace, uint32_t logits,
                                   uint32_t target)
{
    uint32_t rows = ms_view_rows(trace, logits);
    uint32_t most = reduce(trace, "aten::amax", rows);
    uint32_t shifted = run(trace, "aten::sub", rows, most, false);
    ms_trace_drop(trace, most);
    uint32_t exp = run(trace, "aten::exp", shifted, MS_NONE, false);
    uint32_t sum = reduce(trace, "aten::sum", exp);
    ms_trace_drop(trace, exp);
    uint32_t log_probs = run(trace, "aten::sub", shifted, sum, false);
    ms_trace_drop(trace, sum);
    ms_trace_drop(trace, shifted);
    uint32_t own = reduce(trace, "aten::gather", log_probs);
    ms_trace_begin(trace, "aten::nll_loss_forward");
    ms_trace_read(trace, own);
    ms_trace_read(trace, target);
    uint32_t loss =
        ms_trace_make(trace, "loss", MS_FLOAT32, 0, (const int64_t[]){0});
    ms_trace_end(trace, 0, false);
    uint32_t n = ms_trace_node(trace, &rule, &rows, 1, &loss, 1);
    ms_trace_save(trace, n, log_probs);
    ms_trace_save(trace, n, target);
    ms_trace_drop(trace, own);
    ms_trace_drop(trace, log_probs);
    ms_trace_drop(trace, rows);
    return loss;
}

void ms_partloss_exchange(ms_trace *trace, uint32_t logits)
{
    static const uint32_t n_exchanged = 3;
    if (trace->err)
        return;
    const ms_tensor *x = ms_trace_at(trace, logits);
    int64_t rows = (int64_t)ms_trace_elements(x) / x->size[x->n_dims - 1];
    ms_trace_begin(trace, "aten::amax");
    ms_trace_read(trace, logits);
    uint32_t row = ms_trace_make(trace, "statistics", MS_FLOAT32, 1, &rows);
    ms_trace_end(trace, ms_trace_count(trace, logits), false);
    for (uint32_t i = 0; i < n_exchanged; i++)
        ms_tensorops_sum(trace, row);
    ms_trace_drop(trace, row);
}
