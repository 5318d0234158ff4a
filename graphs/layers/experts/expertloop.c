/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Experts one after another, as transformers' eager code loops over them
 * (MixtralSparseMoeBlock, GptOssExperts). */
#include "graphs/aten/opcall.h"
#include "graphs/layers/layers.h"
#include "graphs/trace/trace.h"

/* Calls a row of the op table with one output of these sizes. */
static uint32_t call(ms_trace *trace, const char *op, const char *overload,
                     const uint32_t *in, uint32_t n_in, uint8_t n_dims,
                     const int64_t *dims)
{
    ms_opcall it = {.op = op, .overload = overload};
    if (trace->err)
        return MS_NONE;
    it.made[0].dtype = ms_trace_at(trace, in[0])->dtype;
    it.made[0].n_dims = n_dims;
    for (uint32_t d = 0; d < n_dims; d++)
        it.made[0].size[d] = dims[d];
    return ms_opcall_run(trace, &it, in, n_in);
}

/* A parameter of expert e, or with e < 0 one that holds those of all experts.
 */
static uint32_t weight_of(ms_trace *trace, int64_t e, const char *role,
                          uint32_t n_dims, const int64_t *dims)
{
    const char *name = e < 0 ? role
                             : ms_arena_format(trace->arena, "experts.%lld.%s",
                                               (long long)e, role);
    if (!name && !trace->err)
        trace->err = ms_fail_nomem(trace->fault);
    return trace->err ? MS_NONE : ms_trace_parameter(trace, name, n_dims, dims);
}

/* ---- an expert ----------------------------------------------------------- */

static uint32_t product(ms_trace *trace, int64_t e, const char *role,
                        uint32_t x, int64_t in, int64_t out)
{
    const int64_t dims[2] = {out, in};
    uint32_t weight = weight_of(trace, e, role, 2, dims);
    return ms_matmul_linear(trace, x, weight, MS_NONE);
}

/* w2(act(w1(x)) * w3(x)); drops x. */
static uint32_t run_expert(ms_trace *trace, const ms_expertloop *how, int64_t e,
                           uint32_t x, int64_t width)
{
    const ms_unary *act = how->gated ? &ms_pointwise_silu : &ms_pointwise_gelu;
    uint32_t y = product(trace, e, "w1.weight", x, width, how->hidden);
    y = ms_trace_rebind(trace, y, ms_pointwise_unary(trace, act, y));
    if (how->gated) {
        uint32_t up = product(trace, e, "w3.weight", x, width, how->hidden);
        uint32_t both = ms_pointwise_mul(trace, y, up);
        ms_trace_drop(trace, up);
        y = ms_trace_rebind(trace, y, both);
    }
    ms_trace_drop(trace, x);
    return ms_trace_rebind(
        trace, y, product(trace, e, "w2.weight", y, how->hidden, width));
}

/* x @ weight[e] + bias[e].  All experts share one tensor of weights, so that
 * the gradient of weight[e] is as large as the whole tensor (SelectBackward0).
 */
static uint32_t product_of_all(ms_trace *trace, const uint32_t all[2],
                               uint32_t x)
{
    uint32_t weight = ms_view_select(trace, all[0], 0);
    uint32_t turned = ms_view_transpose(trace, weight, 0, 1);
    ms_trace_drop(trace, weight);
    uint32_t y = ms_matmul_linear(trace, x, turned, MS_NONE);
    ms_trace_drop(trace, turned);
    uint32_t bias = ms_view_select(trace, all[1], 0);
    uint32_t sum = ms_pointwise_add(trace, y, bias);
    ms_trace_drop(trace, bias);
    return ms_trace_rebind(trace, y, sum);
}

/* A view of every second channel: gate and up are interleaved. */
static uint32_t half_of(ms_trace *trace, uint32_t both, int64_t hidden)
{
    uint32_t y = ms_view_slice(trace, both, 1, hidden);
    if (!trace->err)
        ms_trace_at(trace, y)->stride[1] = 2;
    return y;
}

/* (clamp(up) + 1) * (clamp(gate) * sigmoid(clamp(gate) * alpha)) */
static uint32_t clamped_gate(ms_trace *trace, uint32_t both, int64_t hidden)
{
    uint32_t gate = half_of(trace, both, hidden);
    uint32_t up = half_of(trace, both, hidden);
    gate = ms_trace_rebind(
        trace, gate, ms_opcall_like_run(trace, "aten::clamp_max", &gate, 1));
    up = ms_trace_rebind(trace, up,
                         ms_opcall_like_run(trace, "aten::clamp", &up, 1));
    uint32_t scaled = ms_pointwise_mul_scalar(trace, gate);
    scaled = ms_trace_rebind(
        trace, scaled,
        ms_pointwise_unary(trace, &ms_pointwise_sigmoid, scaled));
    uint32_t glu = ms_pointwise_mul(trace, gate, scaled);
    ms_trace_drop(trace, scaled);
    uint32_t more = ms_pointwise_add_scalar(trace, up);
    uint32_t y = ms_pointwise_mul(trace, more, glu);
    ms_trace_drop(trace, more);
    ms_trace_drop(trace, glu);
    ms_trace_drop(trace, up);
    ms_trace_drop(trace, gate);
    return y;
}

/* GptOssExperts: its weights are [experts, in, out], its biases [experts, out].
 */
static uint32_t run_clamped(ms_trace *trace, const ms_expertloop *how,
                            const uint32_t all[4], uint32_t x)
{
    uint32_t both = product_of_all(trace, all, x);
    ms_trace_drop(trace, x);
    uint32_t y = trace->err ? MS_NONE : clamped_gate(trace, both, how->hidden);
    ms_trace_drop(trace, both);
    return ms_trace_rebind(trace, y, product_of_all(trace, all + 2, y));
}

static void make_all(ms_trace *trace, const ms_expertloop *how, int64_t width,
                     uint32_t all[4])
{
    static const char *const roles[4] = {"experts.weight1", "experts.bias1",
                                         "experts.weight2", "experts.bias2"};
    const int64_t dims[4][3] = {{how->experts, width, 2 * how->hidden},
                                {how->experts, 2 * how->hidden, 0},
                                {how->experts, how->hidden, width},
                                {how->experts, width, 0}};
    for (uint32_t i = 0; i < 4; i++)
        all[i] = weight_of(trace, -1, roles[i], i % 2 == 0 ? 3 : 2, dims[i]);
}

/* ---- the loop ------------------------------------------------------------ */

/* The rows of expert e where routing is even; the first experts have the rows
 * that remain, one each. */
static int64_t rows_of(const ms_expertloop *how, int64_t e)
{
    return how->rows / how->experts + (e < how->rows % how->experts ? 1 : 0);
}

/* p[at, e] of scores [tokens, experts] */
static uint32_t share_of(ms_trace *trace, uint32_t p, uint32_t at, int64_t n)
{
    const uint32_t in[2] = {ms_view_select(trace, p, 1), at};
    uint32_t y = call(trace, "aten::index", "Tensor", in, 2, 1, &n);
    ms_trace_drop(trace, in[0]);
    return y;
}

/* torch.zeros_like(logits).scatter_(1, indices, p) */
static uint32_t scatter(ms_trace *trace, const ms_expertloop *how, uint32_t p,
                        uint32_t map)
{
    ms_opcall it = {.op = "aten::scatter", .overload = "src"};
    if (trace->err)
        return MS_NONE;
    const int64_t dims[2] = {ms_trace_at(trace, p)->size[0], how->experts};
    uint32_t all = ms_layers_made(trace, "aten::zeros_like",
                                  ms_trace_at(trace, p)->dtype, 2, dims);
    const uint32_t in[3] = {all, map, p};
    return ms_trace_rebind(trace, all, ms_opcall_in_place(trace, &it, in, 3));
}

/* The weighted output of an expert, expert(x[rows]) * p[rows, which]. */
static uint32_t weighted(ms_trace *trace, const ms_expertloop *how,
                         const uint32_t all[4], int64_t e, uint32_t at,
                         uint32_t x, uint32_t p)
{
    const int64_t n = rows_of(how, e);
    if (trace->err)
        return MS_NONE;
    const int64_t width = ms_layers_last_dim(trace, x);
    const int64_t rows[2] = {n, width}, column[2] = {n, 1};
    const uint32_t chosen[2] = {x, at}, pairs[3] = {p, at, at};
    uint32_t some = call(trace, "aten::index", "Tensor", chosen, 2, 2, rows);
    uint32_t y = how->clamped ? run_clamped(trace, how, all, some)
                              : run_expert(trace, how, e, some, width);
    uint32_t share =
        how->clamped ? share_of(trace, p, at, n)
                     : call(trace, "aten::index", "Tensor", pairs, 3, 1, &n);
    share =
        ms_trace_rebind(trace, share, ms_view_reshape(trace, share, 2, column));
    uint32_t product = ms_pointwise_mul(trace, y, share);
    ms_trace_drop(trace, share);
    return ms_trace_rebind(trace, y, product);
}

/* final.index_add_(0, at, y) */
static uint32_t add_rows(ms_trace *trace, uint32_t final, uint32_t at,
                         uint32_t y)
{
    const uint32_t in[3] = {final, at, y};
    ms_opcall it = {.op = "aten::index_add"};
    return ms_trace_rebind(trace, final, ms_opcall_in_place(trace, &it, in, 3));
}

/* The Python variable of an expert's output is bound anew only when the next
 * expert has run: two outputs live at once, and the last one to the end. */
uint32_t ms_expertloop_run(ms_trace *trace, const ms_expertloop *how,
                           uint32_t x, uint32_t which, uint32_t p)
{
    uint32_t all[4] = {MS_NONE}, out = MS_NONE;
    if (trace->err)
        return MS_NONE;
    ms_tensor token = *ms_trace_at(trace, x);
    uint8_t dtype = ms_trace_at(trace, p)->dtype;
    const int64_t hot[3] = {token.size[0], how->chosen, how->experts};
    if (how->clamped) {
        p = scatter(trace, how, p, which);
        make_all(trace, how, token.size[1], all);
    } else {
        ms_trace_ref(trace, p);
    }
    uint32_t final =
        ms_layers_made(trace, "aten::zeros_like", dtype, 2, token.size);
    uint32_t mask = ms_layers_made(trace, "aten::one_hot", MS_INT64, 3, hot);
    for (int64_t e = 0; e < how->experts && !trace->err; e++) {
        const int64_t pairs[2] = {rows_of(how, e), 2};
        uint32_t where =
            ms_layers_made(trace, "aten::nonzero", MS_INT64, 2, pairs);
        uint32_t at = ms_view_select(trace, where, 1);
        ms_trace_drop(trace, where);
        uint32_t y = weighted(trace, how, all, e, at, x, p);
        y = ms_trace_rebind(trace, y, ms_cast_to(trace, y, dtype));
        out = out == MS_NONE ? y : ms_trace_rebind(trace, out, y);
        final = add_rows(trace, final, at, y);
        ms_trace_drop(trace, at);
    }
    ms_trace_drop(trace, out);
    ms_trace_drop(trace, mask);
    ms_trace_drop(trace, p);
    return ms_trace_rebind(trace, final, ms_cast_to(trace, final, token.dtype));
}
