/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Mixture of experts with grouped products (the token dispatcher and the
 * grouped GEMM of Megatron-LM; graphs/autograd.md 21).  Saved for each row are
 * the permuted input, the input and the output of the gate, an int32 with the
 * origin of the row and, where the probabilities are multiplied at the end, the
 * output of the expert. */
#include "graphs/layers/experts/experts.h"
#include "graphs/aten/opcall.h"
#include "graphs/ops/ops.h"
#include "graphs/trace/opend.h"
#include "graphs/trace/trace.h"

#define GATE_FLOPS 6
#define GATE_BACKWARD_FLOPS 14

static uint32_t matrix(ms_trace *trace, const char *role, uint8_t dtype,
                       int64_t rows, int64_t columns)
{
    return ms_trace_make(trace, role, dtype, 2,
                         (const int64_t[]){rows, columns});
}

/* One kernel that makes the gradients of all inputs that need one. */
static void all_grads(ms_trace *trace, const ms_node *node,
                      const uint32_t *grads, uint32_t *out)
{
    ms_trace_begin_backward(trace, node, grads[0]);
    for (uint32_t i = 0; i < node->n_inputs; i++)
        if (node->needs[i])
            out[i] = ms_trace_make_like(trace, "grad", node->input[i]);
    ms_trace_end(trace, GATE_BACKWARD_FLOPS * ms_trace_count(trace, grads[0]),
                 false);
}

/* ---- routing ------------------------------------------------------------- */

uint32_t ms_experts_route(ms_trace *trace, uint32_t scores, int64_t chosen,
                          bool sorted, uint32_t *map)
{
    if (trace->err)
        return MS_NONE;
    ms_tensor all = *ms_trace_at(trace, scores);
    ms_trace_begin(trace, "aten::topk");
    ms_trace_read(trace, scores);
    uint32_t best = matrix(trace, "best", all.dtype, all.size[0], chosen);
    uint32_t which = matrix(trace, "indices", MS_INT64, all.size[0], chosen);
    ms_trace_end(trace, ms_trace_count(trace, scores), false);
    uint32_t n = ms_trace_node(trace, ms_opcall_rule(trace, "aten::topk"),
                               &scores, 1, &best, 1);
    ms_trace_save(trace, n, which);
    *map = which;
    if (!sorted)
        return best;
    ms_trace_begin(trace, "moe_sort");
    ms_trace_read(trace, which);
    *map = matrix(trace, "row_map", MS_INT32, all.size[0], chosen);
    ms_trace_end(trace, 0, false);
    ms_trace_drop(trace, which);
    return best;
}

/* ---- permute and unpermute ----------------------------------------------- */

static const ms_rule permute_rule = {"PermuteTokensBackward",
                                     "moe_permute_backward", all_grads};
static const ms_rule unpermute_rule = {"UnpermuteTokensBackward",
                                       "moe_unpermute_backward", all_grads};

uint32_t ms_experts_permute(ms_trace *trace, uint32_t x, uint32_t map,
                            const ms_experts *experts)
{
    if (trace->err)
        return MS_NONE;
    ms_tensor token = *ms_trace_at(trace, x);
    ms_trace_begin(trace, "moe_permute");
    ms_trace_read(trace, x);
    ms_trace_read(trace, map);
    uint32_t y =
        matrix(trace, "permuted", token.dtype, experts->rows, token.size[1]);
    ms_trace_end(trace, 0, false);
    uint32_t n = ms_trace_node(trace, &permute_rule, &x, 1, &y, 1);
    ms_trace_save(trace, n, map);
    return y;
}

uint32_t ms_experts_unpermute(ms_trace *trace, uint32_t y, uint32_t map,
                              uint32_t probabilities, int64_t tokens)
{
    bool weighted = probabilities != MS_NONE;
    uint32_t inputs[2] = {y, probabilities};
    if (trace->err)
        return MS_NONE;
    ms_tensor row = *ms_trace_at(trace, y);
    ms_trace_begin(trace, "moe_unpermute");
    ms_trace_read(trace, y);
    ms_trace_read(trace, map);
    ms_trace_read(trace, probabilities);
    uint32_t out = matrix(trace, "out", row.dtype, tokens, row.size[1]);
    ms_trace_end(trace, 2 * ms_trace_count(trace, y), false);
    uint32_t n = ms_trace_node(trace, &unpermute_rule, inputs, weighted ? 2 : 1,
                               &out, 1);
    ms_trace_save(trace, n, map);
    if (weighted) {
        ms_trace_save(trace, n, y);
        ms_trace_save(trace, n, probabilities);
    }
    return out;
}

/* ---- the experts --------------------------------------------------------- */

/* The first dimension of the weight, the product's second input. */
static double groups_of(const ms_trace *trace, const ms_node *node)
{
    return (double)ms_trace_at(trace, node->input[1])->size[0];
}

/* One of the two gradients, made by a grouped product. */
static void one_grad(ms_trace *trace, const ms_node *node, uint32_t i,
                     uint32_t other, uint8_t pass, const uint32_t *grads,
                     uint32_t *out)
{
    const ms_kernel_hooks *hooks = trace->kernels.hooks;
    bool weight = pass == MS_GRAD_WEIGHT;
    uint8_t was = trace->pass;
    if (!node->needs[i] || trace->err)
        return;
    trace->pass = pass;
    out[i] = weight && hooks->stand_in ? hooks->stand_in(trace, node->input[i])
                                       : MS_NONE;
    ms_trace_begin(trace, node->rule->op);
    ms_trace_read(trace, grads[0]);
    ms_trace_read(trace, other);
    if (out[i] == MS_NONE)
        out[i] = ms_trace_make_like(trace, "grad", node->input[i]);
    if (weight && hooks->add_gradient)
        hooks->add_gradient(trace, node->input[i]);
    ms_opend_grouped(trace, node->flops, out[i], groups_of(trace, node));
    trace->pass = was;
}

static void product_backward(ms_trace *trace, const ms_node *node,
                             const uint32_t *grads, uint32_t *out)
{
    one_grad(trace, node, 0, node->input[1], MS_GRAD_INPUT, grads, out);
    one_grad(trace, node, 1, node->input[0], MS_GRAD_WEIGHT, grads, out);
}

static const ms_rule product_rule = {"GroupedGemmBackward", "grouped_gemm",
                                     product_backward};

uint32_t ms_experts_product(ms_trace *trace, uint32_t x, uint32_t weight)
{
    uint32_t inputs[2] = {x, weight};
    if (trace->err)
        return MS_NONE;
    ms_tensor rows = *ms_trace_at(trace, x);
    int64_t width = ms_trace_at(trace, weight)->size[1];
    double flops =
        2 * (double)rows.size[0] * (double)rows.size[1] * (double)width;
    ms_trace_begin(trace, "grouped_gemm");
    ms_trace_read(trace, x);
    ms_trace_read(trace, weight);
    uint32_t y = matrix(trace, "out", rows.dtype, rows.size[0], width);
    ms_opend_grouped(trace, flops, y,
                     (double)ms_trace_at(trace, weight)->size[0]);
    uint32_t n = ms_trace_node(trace, &product_rule, inputs, 2, &y, 1);
    if (n != MS_NONE)
        trace->nodes[n].flops = flops;
    if (ms_trace_needs(trace, weight))
        ms_trace_save(trace, n, x);
    ms_trace_save(trace, n, weight);
    return y;
}

static const ms_rule gate_rule = {"WeightedSwiGluBackward",
                                  "weighted_swiglu_backward", all_grads};

uint32_t ms_experts_gate(ms_trace *trace, uint32_t x, uint32_t probabilities)
{
    bool weighted = probabilities != MS_NONE;
    uint32_t inputs[2] = {x, probabilities};
    if (trace->err)
        return MS_NONE;
    ms_tensor both = *ms_trace_at(trace, x);
    ms_trace_begin(trace, "weighted_swiglu");
    ms_trace_read(trace, x);
    ms_trace_read(trace, probabilities);
    uint32_t y =
        matrix(trace, "out", both.dtype, both.size[0], both.size[1] / 2);
    ms_trace_end(trace, GATE_FLOPS * ms_trace_count(trace, x), false);
    uint32_t n =
        ms_trace_node(trace, &gate_rule, inputs, weighted ? 2 : 1, &y, 1);
    ms_trace_save(trace, n, x);
    if (weighted)
        ms_trace_save(trace, n, probabilities);
    return y;
}

/* x * p[:, None], in the dtype of x. */
static uint32_t weighted(ms_trace *trace, uint32_t x, uint32_t p)
{
    if (trace->err || p == MS_NONE)
        return x;
    uint8_t dtype = ms_trace_at(trace, x)->dtype;
    const int64_t column[2] = {ms_trace_at(trace, p)->size[0], 1};
    uint32_t share = ms_view_reshape(trace, p, 2, column);
    x = ms_trace_rebind(trace, x, ms_pointwise_mul(trace, x, share));
    ms_trace_drop(trace, share);
    return ms_trace_rebind(trace, x, ms_cast_to(trace, x, dtype));
}

uint32_t ms_experts_activate(ms_trace *trace, bool gated, uint32_t y,
                             uint32_t probabilities)
{
    if (gated)
        return ms_trace_rebind(trace, y,
                               ms_experts_gate(trace, y, probabilities));
    y = ms_trace_rebind(trace, y,
                        ms_pointwise_unary(trace, &ms_pointwise_gelu, y));
    return weighted(trace, y, probabilities);
}
