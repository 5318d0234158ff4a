/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Cross entropy of logits.float() as torch.compile leaves it: the cast is part
 * of the kernels, so that the 16-bit logits are what is saved, with the maximum
 * and the logarithm of the sum of each row (what the partitioner of
 * torch/_functorch/partitioners.py finds cheapest); backward reads them and
 * writes the gradient of the logits at once. */
#include "graphs/ops/ops.h"
#include "graphs/trace/trace.h"

static void backward(ms_trace *trace, const ms_node *node,
                     const uint32_t *grads, uint32_t *out)
{
    ms_trace_begin_backward(trace, node, grads[0]);
    out[0] = ms_trace_make_like(trace, "grad", node->input[0]);
    ms_trace_end(trace, 3 * ms_trace_count(trace, node->input[0]), false);
}

static const ms_rule rule = {"CompiledFunctionBackward",
                             "compiled_cross_entropy_backward", backward};

uint32_t ms_compiledloss_cross_entropy(ms_trace *trace, uint32_t logits,
                                       uint32_t target)
{
    uint32_t rows = ms_view_rows(trace, logits);
    if (trace->err)
        return MS_NONE;
    int64_t n_rows = ms_trace_at(trace, rows)->size[0];
    ms_trace_begin(trace, "compiled_cross_entropy");
    ms_trace_read(trace, rows);
    ms_trace_read(trace, target);
    uint32_t made[2] = {
        ms_trace_make(trace, "max", MS_FLOAT32, 1, &n_rows),
        ms_trace_make(trace, "log_sum", MS_FLOAT32, 1, &n_rows)};
    uint32_t loss =
        ms_trace_make(trace, "loss", MS_FLOAT32, 0, (const int64_t[]){0});
    ms_trace_end(trace, 5 * ms_trace_count(trace, rows), false);
    uint32_t n = ms_trace_node(trace, &rule, &rows, 1, &loss, 1);
    ms_trace_save(trace, n, rows);
    ms_trace_save(trace, n, target);
    for (int i = 0; i < 2 && !trace->err; i++) {
        ms_trace_save(trace, n, made[i]);
        ms_trace_drop(trace, made[i]);
    }
    ms_trace_drop(trace, rows);
    return loss;
}
