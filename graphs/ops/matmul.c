/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matrix products. */
#include "graphs/ops/autocast.h"
#include "graphs/ops/ops.h"
#include "graphs/trace/opend.h"
#include "graphs/trace/rowpieces.h"
#include "graphs/trace/savelist.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

/* Can cuBLAS read the matrix without a copy, by rows or by columns
 * (ATen/native/cuda/Blas.cpp, prepare_batch_matrix_for_cublas)? */
static bool is_matrix(const ms_tensor *x)
{
    uint32_t row = x->n_dims - 2u, column = x->n_dims - 1u;
    int64_t rows = x->size[row], columns = x->size[column];
    bool by_rows =
        x->stride[column] == 1 && x->stride[row] >= (columns > 1 ? columns : 1);
    bool by_columns =
        x->stride[row] == 1 && x->stride[column] >= (rows > 1 ? rows : 1);
    return by_rows || by_columns || rows == 1 || columns == 1;
}

/* cuBLAS gets a dense copy of any other operand, such as an expanded gradient;
 * the copy lives only while the kernel runs. */
static void copy_operand(ms_trace *trace, uint32_t x)
{
    if (trace->err || trace->settings->cpu)
        return;
    const ms_tensor *operand = ms_trace_at(trace, x);
    if (operand->n_dims >= 2 && !is_matrix(operand))
        ms_trace_workspace(trace, ms_trace_bytes(operand));
}

/* What lasts and stands for the weight's gradient, or MS_NONE. */
static uint32_t stand_in(ms_trace *trace, uint32_t weight)
{
    const ms_kernel_hooks *hooks = trace->kernels.hooks;
    return hooks->stand_in && !trace->err ? hooks->stand_in(trace, weight)
                                          : MS_NONE;
}

static void add_gradient(ms_trace *trace, uint32_t weight)
{
    if (trace->kernels.hooks->add_gradient)
        trace->kernels.hooks->add_gradient(trace, weight);
}

/* a [m, k] times b [k, n] as one kernel of 2 m n k FLOPs.  mm and addmm give
 * the gradient of an operand the operand's layout; bmm makes it contiguous
 * (graphs/autograd.md 8). */
static uint32_t product(ms_trace *trace, const char *op, uint32_t a, uint32_t b,
                        uint32_t like, const char *role, double flops,
                        uint8_t pass)
{
    uint8_t was = trace->pass;
    bool batched = !trace->err && ms_trace_at(trace, like)->n_dims > 2;
    trace->pass = pass;
    uint32_t y = pass == MS_GRAD_WEIGHT ? stand_in(trace, like) : MS_NONE;
    ms_trace_begin(trace, op);
    ms_trace_read(trace, a);
    ms_trace_read(trace, b);
    if (y == MS_NONE)
        y = batched ? ms_trace_make_like(trace, role, like)
                    : ms_view_make(trace, role, like, like);
    copy_operand(trace, a);
    copy_operand(trace, b);
    if (pass == MS_GRAD_WEIGHT)
        add_gradient(trace, like);
    ms_opend_product(trace, flops, y);
    trace->pass = was;
    return y;
}

/* ---- linear -------------------------------------------------------------- */

/* linear multiplies by weight.t(), whose backward transposes the gradient of
 * the product: the result is a view, to which the engine does not add in place
 * (graphs/autograd.md 5).  Op graphs have a node of their own for that. */
static uint32_t weight_grad(ms_trace *trace, const ms_node *node, uint32_t grad,
                            uint32_t x, uint32_t weight)
{
    uint32_t y = product(trace, "aten::mm", grad, x, weight, "grad",
                         node->flops, MS_GRAD_WEIGHT);
    if (!trace->err && node->i[0] != 0)
        ms_trace_at(trace, y)->view = true;
    return y;
}

static uint32_t input_grad(ms_trace *trace, const ms_node *node, uint32_t grad,
                           uint32_t x, uint32_t weight)
{
    uint32_t y = product(trace, "aten::mm", grad, weight, x, "grad",
                         node->flops, MS_GRAD_INPUT);
    ms_rowpieces_product(trace, grad);
    return y;
}

/* Inputs: bias, x, weight.  The gradients of addmm are made in the order mat1,
 * mat2, self; the last is the bias, and the engine sums it to its shape. */
static void addmm_backward(ms_trace *trace, const ms_node *node,
                           const uint32_t *grads, uint32_t *out)
{
    uint32_t weight = node->input[2], x = node->input[1];
    if (node->needs[1])
        out[1] = input_grad(trace, node, grads[0], x, weight);
    if (node->needs[2])
        out[2] = weight_grad(trace, node, grads[0], x, weight);
    if (node->needs[0]) {
        ms_trace_ref(trace, grads[0]);
        out[0] = grads[0];
    }
}

/* Inputs: x, weight.  mm makes the gradient of mat2 (the weight) first, then
 * that of self; where the gradient comes in pieces the product that begins with
 * the one that is here is first (rowpieces.h). */
static void mm_backward(ms_trace *trace, const ms_node *node,
                        const uint32_t *grads, uint32_t *out)
{
    uint32_t x = node->input[0], weight = node->input[1];
    bool early = node->needs[0] && ms_rowpieces_awaits(trace, grads[0]);
    if (early)
        out[0] = input_grad(trace, node, grads[0], x, weight);
    if (node->needs[1])
        out[1] = weight_grad(trace, node, grads[0], x, weight);
    if (node->needs[0] && !early)
        out[0] = input_grad(trace, node, grads[0], x, weight);
}

const ms_rule ms_matmul_addmm_rule = {"AddmmBackward0", "aten::mm",
                                      addmm_backward};
const ms_rule ms_matmul_mm_rule = {"MmBackward0", "aten::mm", mm_backward};

static void save_turned(ms_trace *trace, uint32_t node, uint32_t weight)
{
    ms_trace_save(trace, node, weight);
    ms_savelist_turned(trace);
}

/* Each operand is saved only if the other one needs a gradient, which is
 * computed from it. */
static void linear_node(ms_trace *trace, uint32_t rows, uint32_t weight,
                        uint32_t bias, uint32_t y, double flops)
{
    uint32_t with_bias[3] = {bias, rows, weight};
    uint32_t plain[2] = {rows, weight};
    bool biased = bias != MS_NONE;
    uint32_t n = ms_trace_node(
        trace, biased ? &ms_matmul_addmm_rule : &ms_matmul_mm_rule,
        biased ? with_bias : plain, biased ? 3 : 2, &y, 1);
    if (n == MS_NONE)
        return;
    trace->nodes[n].flops = flops;
    trace->nodes[n].i[0] = 1; /* the weight was transposed */
    bool needs_rows = ms_trace_needs(trace, weight);
    if (biased && ms_trace_needs(trace, rows))
        save_turned(trace, n, weight);
    if (needs_rows)
        ms_trace_save(trace, n, rows);
    if (!biased && ms_trace_needs(trace, rows))
        save_turned(trace, n, weight);
}

/* at::linear fuses the bias where x has two dimensions or is contiguous (1.13:
 * and has three); else it is added in place after the product. */
static bool fuses_bias(const ms_step_settings *settings, const ms_tensor *x)
{
    return x->n_dims == 2 ||
           (ms_view_is_contiguous(x) &&
            (x->n_dims == 3 || settings->framework > MS_TORCH_1_13));
}

/* rows [n, in] weight [out, in]: [n, out] */
static uint32_t multiply_rows(ms_trace *trace, uint32_t rows, uint32_t weight,
                              uint32_t bias, double *flops)
{
    const ms_tensor *w = ms_trace_at(trace, weight);
    const ms_tensor *x = ms_trace_at(trace, rows);
    int64_t dims[2] = {x->size[0], w->size[0]};
    *flops = 2.0 * (double)dims[0] * (double)w->size[0] * (double)w->size[1];
    ms_trace_begin(trace, bias == MS_NONE ? "aten::mm" : "aten::addmm");
    ms_trace_read(trace, bias);
    ms_trace_read(trace, rows);
    ms_trace_read(trace, weight);
    uint32_t flat = ms_trace_make(trace, "out", x->dtype, 2, dims);
    ms_opend_product(trace, *flops, flat);
    if (bias == MS_NONE)
        ms_rowpieces_product(trace, rows);
    return flat;
}

uint32_t ms_matmul_rows(ms_trace *trace, uint32_t rows, uint32_t weight)
{
    double flops;
    return trace->err ? MS_NONE
                      : multiply_rows(trace, rows, weight, MS_NONE, &flops);
}

uint32_t ms_matmul_grad_rows(ms_trace *trace, uint32_t grad, uint32_t weight,
                             double flops)
{
    if (trace->err)
        return MS_NONE;
    int64_t dims[2] = {ms_trace_at(trace, grad)->size[0],
                       ms_trace_at(trace, weight)->size[1]};
    uint8_t was = trace->pass, dtype = ms_trace_at(trace, grad)->dtype;
    trace->pass = MS_GRAD_INPUT;
    ms_trace_begin(trace, "aten::mm");
    ms_trace_read(trace, grad);
    ms_trace_read(trace, weight);
    uint32_t y = ms_trace_make(trace, "grad", dtype, 2, dims);
    ms_opend_product(trace, flops, y);
    trace->pass = was;
    return y;
}

uint32_t ms_matmul_grad_weight(ms_trace *trace, uint32_t grad, uint32_t x,
                               uint32_t weight, double flops)
{
    return product(trace, "aten::mm", grad, x, weight, "grad", flops,
                   MS_GRAD_WEIGHT);
}

static uint32_t linear(ms_trace *trace, uint32_t x, uint32_t weight,
                       uint32_t bias)
{
    if (trace->err)
        return MS_NONE;
    ms_tensor in = *ms_trace_at(trace, x);
    uint32_t rows = x;
    if (in.n_dims == 2)
        ms_trace_ref(trace, x);
    else
        rows = ms_view_rows(trace, x);
    if (trace->err)
        return MS_NONE;
    bool fused = bias == MS_NONE || fuses_bias(trace->settings, &in);
    double flops;
    uint32_t added = fused ? bias : MS_NONE;
    uint32_t flat = multiply_rows(trace, rows, weight, added, &flops);
    linear_node(trace, rows, weight, added, flat, flops);
    ms_trace_drop(trace, rows);
    if (in.n_dims == 2 || trace->err)
        return flat;
    in.size[in.n_dims - 1] = ms_trace_at(trace, weight)->size[0];
    uint32_t y = ms_view_reshape(trace, flat, in.n_dims, in.size);
    ms_trace_drop(trace, flat);
    if (fused)
        return y;
    uint32_t sum = ms_pointwise_add_in_place(trace, y, bias);
    ms_trace_drop(trace, y);
    return sum;
}

uint32_t ms_matmul_linear(ms_trace *trace, uint32_t x, uint32_t weight,
                          uint32_t bias)
{
    const uint32_t inputs[3] = {x, weight, bias};
    uint32_t in[3];
    ms_autocast_enter(trace, "linear", 3, inputs, in);
    uint32_t y = linear(trace, in[0], in[1], in[2]);
    ms_autocast_exit(trace, 3, in);
    return y;
}

/* ---- batched ------------------------------------------------------------- */

/* bmm makes the gradient of mat2 first, then that of self. */
static void bmm_backward(ms_trace *trace, const ms_node *node,
                         const uint32_t *grads, uint32_t *out)
{
    uint32_t a = node->input[0], b = node->input[1];
    if (node->needs[1])
        out[1] = product(trace, "aten::bmm", a, grads[0], b, "grad",
                         node->flops, MS_GRAD_INPUT);
    if (node->needs[0])
        out[0] = product(trace, "aten::bmm", grads[0], b, a, "grad",
                         node->flops, MS_GRAD_INPUT);
}

const ms_rule ms_matmul_bmm_rule = {"BmmBackward0", "aten::bmm", bmm_backward};

/* Inputs: self, a, b. */
static void baddbmm_backward(ms_trace *trace, const ms_node *node,
                             const uint32_t *grads, uint32_t *out)
{
    uint32_t b = node->input[2], a = node->input[1];
    if (node->needs[1])
        out[1] = product(trace, "aten::bmm", grads[0], b, a, "grad",
                         node->flops, MS_GRAD_INPUT);
    if (node->needs[2])
        out[2] = product(trace, "aten::bmm", a, grads[0], b, "grad",
                         node->flops, MS_GRAD_INPUT);
    if (node->needs[0]) {
        ms_trace_ref(trace, grads[0]);
        out[0] = grads[0];
    }
}

const ms_rule ms_matmul_baddbmm_rule = {"BaddbmmBackward0", "aten::bmm",
                                        baddbmm_backward};

static uint32_t fold_batch(ms_trace *trace, uint32_t x)
{
    uint8_t flags = trace->op_flags;
    if (trace->err)
        return MS_NONE;
    const ms_tensor *tensor = ms_trace_at(trace, x);
    int64_t dims[3] = {tensor->size[0] * tensor->size[1], tensor->size[2],
                       tensor->size[3]};
    /* A copy made here is an input of the attention core, not part of it. */
    trace->op_flags &= (uint8_t)~MS_OP_CORE;
    uint32_t y = ms_view_reshape(trace, x, 3, dims);
    trace->op_flags = flags;
    return y;
}

/* bmm's node, or baddbmm's (bias MS_NONE: none). */
static void batched_node(ms_trace *trace, uint32_t bias, uint32_t left,
                         uint32_t right, uint32_t y, double flops)
{
    uint32_t inputs[3] = {bias, left, right};
    bool onto = bias != MS_NONE;
    uint32_t n = ms_trace_node(
        trace, onto ? &ms_matmul_baddbmm_rule : &ms_matmul_bmm_rule,
        onto ? inputs : inputs + 1, onto ? 3 : 2, &y, 1);
    if (n != MS_NONE)
        trace->nodes[n].flops = flops;
    ms_trace_save(trace, n, left);
    ms_trace_save(trace, n, right);
}

static uint32_t batched(ms_trace *trace, uint32_t bias, uint32_t a, uint32_t b)
{
    uint32_t left = fold_batch(trace, a), right = fold_batch(trace, b);
    if (trace->err)
        return MS_NONE;
    const ms_tensor *x = ms_trace_at(trace, a), *y = ms_trace_at(trace, b);
    int64_t full[4] = {x->size[0], x->size[1], x->size[2], y->size[3]};
    int64_t dims[3] = {full[0] * full[1], full[2], full[3]};
    uint8_t dtype = x->dtype;
    double flops = 2.0 * (double)dims[0] * (double)dims[1] * (double)dims[2] *
                   (double)x->size[3];
    ms_trace_begin(trace, bias == MS_NONE ? "aten::bmm" : "aten::baddbmm");
    ms_trace_read(trace, bias);
    ms_trace_read(trace, left);
    ms_trace_read(trace, right);
    uint32_t flat = ms_trace_make(trace, "out", dtype, 3, dims);
    ms_opend_product(trace, flops, flat);
    batched_node(trace, bias, left, right, flat, flops);
    ms_trace_drop(trace, left);
    ms_trace_drop(trace, right);
    uint32_t out = ms_view_reshape(trace, flat, 4, full);
    ms_trace_drop(trace, flat);
    if (!trace->err) /* at::_unsafe_view: no view where it is written to */
        ms_trace_at(trace, out)->view = false;
    return out;
}

uint32_t ms_matmul_batched(ms_trace *trace, uint32_t a, uint32_t b)
{
    const uint32_t inputs[2] = {a, b};
    uint32_t in[2];
    ms_autocast_enter(trace, "matmul", 2, inputs, in);
    uint32_t y = batched(trace, MS_NONE, in[0], in[1]);
    ms_autocast_exit(trace, 2, in);
    return y;
}

uint32_t ms_matmul_batched_onto(ms_trace *trace, uint32_t bias, uint32_t a,
                                uint32_t b)
{
    const uint32_t inputs[3] = {bias, a, b};
    uint32_t in[3];
    ms_autocast_enter(trace, "baddbmm", 3, inputs, in);
    uint32_t y = batched(trace, in[0], in[1], in[2]);
    ms_autocast_exit(trace, 3, in);
    return y;
}
