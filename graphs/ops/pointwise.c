/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Element-wise ops.  FLOPs per element follow Calculon
 * (calculon-ai/calculon, calculon/llm/layers.py): GELU 8 forward and 13
 * backward, dropout 1, add 1. */
#include "graphs/ops/autocast.h"
#include "graphs/ops/ops.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

#include <string.h>

static uint8_t dtype_with(const ms_trace *trace, uint8_t dtype, uint32_t x)
{
    if (x == MS_NONE || ms_trace_at(trace, x)->n_dims == 0)
        return dtype;
    return ms_dtypes_wider(dtype, ms_trace_at(trace, x)->dtype);
}

/* Made by the open op: like's shape, the widest dtype of a and b (MS_NONE:
 * none), like's where neither floats. */
static uint32_t make_widest(ms_trace *trace, const char *role, uint32_t a,
                            uint32_t b, uint32_t like)
{
    if (trace->err)
        return MS_NONE;
    const ms_tensor *shape = ms_trace_at(trace, like);
    uint8_t dtype = dtype_with(trace, dtype_with(trace, MS_BYTE, a), b);
    return ms_trace_make(trace, role,
                         ms_dtypes_floats(dtype) ? dtype : shape->dtype,
                         shape->n_dims, shape->size);
}

/* One kernel: reads a and b (MS_NONE: none), makes a tensor of like's shape,
 * laid out as the first of them that has its shape (TensorIterator). */
static uint32_t kernel(ms_trace *trace, const char *op, uint32_t a, uint32_t b,
                       uint32_t like, const char *role, double flops)
{
    ms_trace_begin(trace, op);
    ms_trace_read(trace, a);
    ms_trace_read(trace, b);
    uint32_t y = make_widest(trace, role, a, b, like);
    if (y != MS_NONE && b != MS_NONE)
        ms_view_lay_out(trace, y, b);
    if (y != MS_NONE && a != MS_NONE)
        ms_view_lay_out(trace, y, a);
    ms_trace_end(trace, flops * ms_trace_count(trace, like), false);
    return y;
}

/* The commonest backward: one kernel of the incoming gradient and what was
 * saved. */
void ms_pointwise_one_kernel(ms_trace *trace, const ms_node *node,
                             const uint32_t *grads, uint32_t *out)
{
    uint32_t saved = node->n_saved ? node->saved[0] : MS_NONE;
    out[0] = kernel(trace, node->rule->op, grads[0], saved, node->input[0],
                    "grad", 2);
}

/* threshold_backward and leaky_relu_backward have the saved tensor as their
 * first operand, and TensorIterator gives the result the layout of the first.
 */
static void like_saved(ms_trace *trace, const ms_node *node,
                       const uint32_t *grads, uint32_t *out)
{
    uint32_t saved = node->n_saved ? node->saved[0] : MS_NONE;
    out[0] = kernel(trace, node->rule->op, saved, grads[0], node->input[0],
                    "grad", 2);
}

static void pass_on(ms_trace *trace, const ms_node *node, const uint32_t *grads,
                    uint32_t *out)
{
    for (uint32_t i = 0; i < node->n_inputs; i++)
        if (node->needs[i]) {
            ms_trace_ref(trace, grads[0]);
            out[i] = grads[0];
        }
}

/* ---- unary --------------------------------------------------------------- */

const ms_unary ms_pointwise_relu = {
    "aten::relu",
    {"ReluBackward0", "aten::threshold_backward", like_saved},
    true,
    1};
const ms_unary ms_pointwise_gelu = {
    "aten::gelu",
    {"GeluBackward0", "aten::gelu_backward", ms_pointwise_one_kernel},
    false,
    8};
const ms_unary ms_pointwise_silu = {
    "aten::silu",
    {"SiluBackward0", "aten::silu_backward", ms_pointwise_one_kernel},
    false,
    5};
const ms_unary ms_pointwise_sigmoid = {
    "aten::sigmoid",
    {"SigmoidBackward0", "aten::sigmoid_backward", ms_pointwise_one_kernel},
    true,
    4};
const ms_unary ms_pointwise_tanh = {
    "aten::tanh",
    {"TanhBackward0", "aten::tanh_backward", ms_pointwise_one_kernel},
    true,
    5};

const ms_unary ms_pointwise_exp = {
    "aten::exp",
    {"ExpBackward0", "aten::mul", ms_pointwise_one_kernel},
    true,
    4};
const ms_unary ms_pointwise_log = {
    "aten::log",
    {"LogBackward0", "aten::div", ms_pointwise_one_kernel},
    false,
    4};
const ms_unary ms_pointwise_neg = {
    "aten::neg",
    {"NegBackward0", "aten::neg", ms_pointwise_one_kernel},
    false,
    1};

const ms_unary ms_pointwise_leaky_relu = {
    "aten::leaky_relu",
    {"LeakyReluBackward0", "aten::leaky_relu_backward", like_saved},
    false,
    1};

/* A kernel whose output is laid out like x where x is dense, as TensorIterator
 * makes it. */
static uint32_t laid_out(ms_trace *trace, const char *op, uint32_t a,
                         uint32_t b, uint32_t like, double flops)
{
    uint32_t y = kernel(trace, op, a, b, like, "out", flops);
    if (y != MS_NONE)
        ms_view_lay_out(trace, y, like);
    return y;
}

uint32_t ms_pointwise_unary(ms_trace *trace, const ms_unary *unary, uint32_t x)
{
    const char *name = unary->op + strlen("aten::");
    uint32_t in = ms_autocast_input(trace, name, x);
    uint32_t y = laid_out(trace, unary->op, in, MS_NONE, in, unary->flops);
    uint32_t n = ms_trace_node(trace, &unary->rule, &in, 1, &y, 1);
    ms_trace_save(trace, n, unary->saves_output ? y : in);
    ms_trace_drop(trace, in);
    return y;
}

/* The kernel reads a and b and writes a, whose storage the result shares. */
static uint32_t kernel_in_place(ms_trace *trace, const char *op, uint32_t a,
                                uint32_t b, double flops)
{
    ms_trace_begin(trace, op);
    ms_trace_read(trace, a);
    ms_trace_read(trace, b);
    if (!trace->err)
        trace->graph->op_write_bytes[trace->graph->n_ops - 1] +=
            ms_trace_bytes(ms_trace_at(trace, a));
    ms_trace_end(trace, flops * ms_trace_count(trace, a), false);
    uint32_t y = ms_trace_alias(trace, a);
    if (y != MS_NONE)
        ms_trace_at(trace, y)->view = ms_trace_at(trace, a)->view;
    return y;
}

uint32_t ms_pointwise_unary_in_place(ms_trace *trace, const ms_unary *unary,
                                     uint32_t x)
{
    uint32_t y = kernel_in_place(trace, unary->op, x, MS_NONE, unary->flops);
    uint32_t n = ms_trace_node(trace, &unary->rule, &x, 1, &y, 1);
    ms_trace_save(trace, n, y);
    return y;
}

/* ---- with a Python scalar ------------------------------------------------ */

/* On the CPU autograd saves the scalar as an 8-byte float64 tensor
 * (graphs/autograd.md 10); on CUDA that tensor stays in host memory. */
void ms_pointwise_save_scalar(ms_trace *trace, uint32_t node)
{
    if (!trace->settings->cpu || node == MS_NONE)
        return;
    uint32_t scalar =
        ms_trace_make(trace, "scalar", MS_FLOAT64, 0, (const int64_t[]){0});
    ms_trace_save(trace, node, scalar);
    ms_trace_drop(trace, scalar);
}

const ms_rule ms_pointwise_mul_scalar_rule = {"MulBackward0", "aten::mul",
                                              ms_pointwise_one_kernel};
const ms_rule ms_pointwise_div_scalar_rule = {"DivBackward0", "aten::div",
                                              ms_pointwise_one_kernel};
const ms_rule ms_pointwise_add_scalar_rule = {"AddBackward0", NULL, pass_on};

static uint32_t scalar_op(ms_trace *trace, const char *op, const ms_rule *rule,
                          uint32_t x)
{
    uint32_t y = kernel(trace, op, x, MS_NONE, x, "out", 1);
    ms_pointwise_save_scalar(trace, ms_trace_node(trace, rule, &x, 1, &y, 1));
    return y;
}

uint32_t ms_pointwise_mul_scalar(ms_trace *trace, uint32_t x)
{
    return scalar_op(trace, "aten::mul", &ms_pointwise_mul_scalar_rule, x);
}

uint32_t ms_pointwise_div_scalar(ms_trace *trace, uint32_t x)
{
    return scalar_op(trace, "aten::div", &ms_pointwise_div_scalar_rule, x);
}

uint32_t ms_pointwise_add_scalar(ms_trace *trace, uint32_t x)
{
    uint32_t y = kernel(trace, "aten::add", x, MS_NONE, x, "out", 1);
    ms_trace_node(trace, &ms_pointwise_add_scalar_rule, &x, 1, &y, 1);
    return y;
}

/* x^n: grad * (n * x^(n-1)), two temporaries of the formula. */
static void pow_backward(ms_trace *trace, const ms_node *node,
                         const uint32_t *grads, uint32_t *out)
{
    uint32_t x = node->saved[0];
    uint32_t power = kernel(trace, "aten::pow", x, MS_NONE, x, "power", 1);
    uint32_t scaled =
        kernel(trace, "aten::mul", power, MS_NONE, x, "scaled", 1);
    out[0] = kernel(trace, "aten::mul", grads[0], scaled, x, "grad", 1);
    ms_trace_drop(trace, power);
    ms_trace_drop(trace, scaled);
}

/* rsqrt: -0.5 grad result^3, two temporaries; sqrt: grad / (2 result), one. */
static void rsqrt_backward(ms_trace *trace, const ms_node *node,
                           const uint32_t *grads, uint32_t *out)
{
    uint32_t y = node->saved[0];
    uint32_t cube = kernel(trace, "aten::pow", y, MS_NONE, y, "power", 1);
    uint32_t scaled =
        kernel(trace, "aten::mul", grads[0], MS_NONE, y, "scaled", 1);
    out[0] = kernel(trace, "aten::mul", scaled, cube, y, "grad", 1);
    ms_trace_drop(trace, cube);
    ms_trace_drop(trace, scaled);
}

static void sqrt_backward(ms_trace *trace, const ms_node *node,
                          const uint32_t *grads, uint32_t *out)
{
    uint32_t y = node->saved[0];
    uint32_t twice = kernel(trace, "aten::mul", y, MS_NONE, y, "scaled", 1);
    out[0] = kernel(trace, "aten::div", grads[0], twice, y, "grad", 1);
    ms_trace_drop(trace, twice);
}

const ms_rule ms_pointwise_rsqrt_rule = {"RsqrtBackward0", NULL,
                                         rsqrt_backward};
const ms_rule ms_pointwise_sqrt_rule = {"SqrtBackward0", NULL, sqrt_backward};

const ms_rule ms_pointwise_pow_rule = {"PowBackward0", NULL, pow_backward};

uint32_t ms_pointwise_rsqrt(ms_trace *trace, uint32_t x)
{
    uint32_t in = ms_autocast_raise(trace, x);
    uint32_t y = laid_out(trace, "aten::rsqrt", in, MS_NONE, in, 2);
    uint32_t n = ms_trace_node(trace, &ms_pointwise_rsqrt_rule, &in, 1, &y, 1);
    ms_trace_save(trace, n, y);
    ms_trace_drop(trace, in);
    return y;
}

uint32_t ms_pointwise_pow(ms_trace *trace, uint32_t x)
{
    uint32_t in = ms_autocast_raise(trace, x);
    uint32_t y = kernel(trace, "aten::pow", in, MS_NONE, in, "out", 1);
    uint32_t n = ms_trace_node(trace, &ms_pointwise_pow_rule, &in, 1, &y, 1);
    ms_trace_save(trace, n, in);
    ms_trace_drop(trace, in);
    return y;
}

/* ---- binary -------------------------------------------------------------- */

const ms_rule ms_pointwise_add_rule = {"AddBackward0", NULL, pass_on};

/* The larger of two broadcast shapes (all dims of one are at least the
 * other's, aligned at the end). */
static uint32_t wider(ms_trace *trace, uint32_t a, uint32_t b)
{
    if (trace->err)
        return MS_NONE;
    return ms_trace_elements(ms_trace_at(trace, a)) >=
                   ms_trace_elements(ms_trace_at(trace, b))
               ? a
               : b;
}

/* Is each of the two wider in a dimension: a bias of heads, a mask of
 * samples? */
static bool crosses(const ms_trace *trace, uint32_t a, uint32_t b)
{
    bool a_wider = false, b_wider = false;
    if (trace->err)
        return false;
    const ms_tensor *x = ms_trace_at(trace, a), *y = ms_trace_at(trace, b);
    for (uint32_t d = 0; x->n_dims == y->n_dims && d < x->n_dims; d++) {
        a_wider |= x->size[d] > y->size[d];
        b_wider |= y->size[d] > x->size[d];
    }
    return a_wider && b_wider;
}

/* Of the larger of both in each dimension. */
static uint32_t add_across(ms_trace *trace, uint32_t a, uint32_t b)
{
    ms_trace_begin(trace, "aten::add");
    ms_trace_read(trace, a);
    ms_trace_read(trace, b);
    if (trace->err)
        return MS_NONE;
    ms_tensor like = *ms_trace_at(trace, a);
    const ms_tensor *other = ms_trace_at(trace, b);
    for (uint32_t d = 0; d < like.n_dims; d++)
        if (other->size[d] > like.size[d])
            like.size[d] = other->size[d];
    uint32_t y =
        ms_trace_make(trace, "out", like.dtype, like.n_dims, like.size);
    ms_trace_end(trace, ms_trace_count(trace, y), false);
    return y;
}

uint32_t ms_pointwise_add(ms_trace *trace, uint32_t a, uint32_t b)
{
    uint32_t y = crosses(trace, a, b) ? add_across(trace, a, b)
                                      : laid_out(trace, "aten::add", a, b,
                                                 wider(trace, a, b), 1);
    uint32_t inputs[2] = {a, b};
    ms_trace_node(trace, &ms_pointwise_add_rule, inputs, 2, &y, 1);
    return y;
}

/* The node of neg saves nothing: its gradient is the negative of what comes in.
 */
uint32_t ms_pointwise_negative(ms_trace *trace, uint32_t x)
{
    uint32_t y = laid_out(trace, "aten::neg", x, MS_NONE, x, 1);
    ms_trace_node(trace, &ms_pointwise_neg.rule, &x, 1, &y, 1);
    return y;
}

uint32_t ms_pointwise_add_in_place(ms_trace *trace, uint32_t a, uint32_t b)
{
    uint32_t y = kernel_in_place(trace, "aten::add_", a, b, 1);
    uint32_t inputs[2] = {a, b};
    ms_trace_node(trace, &ms_pointwise_add_rule, inputs, 2, &y, 1);
    return y;
}

/* The gradient of sub is its negative for other and the gradient itself for
 * self. */
static void sub_backward(ms_trace *trace, const ms_node *node,
                         const uint32_t *grads, uint32_t *out)
{
    if (node->n_inputs > 1 && node->needs[1])
        out[1] =
            kernel(trace, "aten::neg", grads[0], MS_NONE, grads[0], "grad", 1);
    if (node->needs[0]) {
        ms_trace_ref(trace, grads[0]);
        out[0] = grads[0];
    }
}

const ms_rule ms_pointwise_sub_rule = {"SubBackward0", "aten::neg",
                                       sub_backward};

uint32_t ms_pointwise_sub(ms_trace *trace, uint32_t a, uint32_t b)
{
    uint32_t y = laid_out(trace, "aten::sub", a, b, wider(trace, a, b), 1);
    uint32_t inputs[2] = {a, b};
    ms_trace_node(trace, &ms_pointwise_sub_rule, inputs, 2, &y, 1);
    return y;
}

/* mul makes the gradient of other first, then that of self (graphs/autograd.md
 * 4). */
static void mul_backward(ms_trace *trace, const ms_node *node,
                         const uint32_t *grads, uint32_t *out)
{
    if (node->needs[1])
        out[1] = kernel(trace, "aten::mul", grads[0], node->saved[0], grads[0],
                        "grad", 1);
    if (node->needs[0])
        out[0] = kernel(trace, "aten::mul", grads[0],
                        node->saved[node->n_saved - 1], grads[0], "grad", 1);
}

const ms_rule ms_pointwise_mul_rule = {"MulBackward0", "aten::mul",
                                       mul_backward};

uint32_t ms_pointwise_mul(ms_trace *trace, uint32_t a, uint32_t b)
{
    uint32_t y = laid_out(trace, "aten::mul", a, b, wider(trace, a, b), 1);
    uint32_t inputs[2] = {a, b};
    uint32_t n = ms_trace_node(trace, &ms_pointwise_mul_rule, inputs, 2, &y, 1);
    if (ms_trace_needs(trace, b))
        ms_trace_save(trace, n, a);
    if (ms_trace_needs(trace, a))
        ms_trace_save(trace, n, b);
    return y;
}

/* div first makes the gradient of other, -grad * ((self / other) / other) with
 * three temporaries, then that of self. */
static void div_backward(ms_trace *trace, const ms_node *node,
                         const uint32_t *grads, uint32_t *out)
{
    uint32_t other = node->saved[node->n_saved - 1u];
    if (node->needs[1]) {
        uint32_t self = node->saved[0], g = grads[0];
        uint32_t a = kernel(trace, "aten::div", self, other, g, "ratio", 1);
        uint32_t b = kernel(trace, "aten::div", a, other, g, "ratio", 1);
        uint32_t c = kernel(trace, "aten::neg", g, MS_NONE, g, "negated", 1);
        out[1] = kernel(trace, "aten::mul", c, b, g, "grad", 1);
        ms_trace_drop(trace, c);
        ms_trace_drop(trace, b);
        ms_trace_drop(trace, a);
    }
    if (node->needs[0])
        out[0] =
            kernel(trace, "aten::div", grads[0], other, grads[0], "grad", 1);
}

const ms_rule ms_pointwise_div_rule = {"DivBackward0", "aten::div",
                                       div_backward};

/* ---- masks --------------------------------------------------------------- */

const ms_rule ms_pointwise_masked_fill_rule = {
    "MaskedFillBackward0", "aten::masked_fill", ms_pointwise_one_kernel};

uint32_t ms_pointwise_masked_fill(ms_trace *trace, uint32_t x, uint32_t mask)
{
    uint32_t y = kernel(trace, "aten::masked_fill", x, mask, x, "out", 0);
    uint32_t n =
        ms_trace_node(trace, &ms_pointwise_masked_fill_rule, &x, 1, &y, 1);
    ms_trace_save(trace, n, mask);
    return y;
}

uint32_t ms_pointwise_is_zero(ms_trace *trace, uint32_t buffer, uint32_t n_dims,
                              const int64_t *dims)
{
    ms_trace_begin(trace, "aten::eq");
    ms_trace_read(trace, buffer);
    uint32_t y = ms_trace_make(trace, "mask", MS_BYTE, n_dims, dims);
    ms_trace_end(trace, 0, false);
    return y;
}

/* ---- dropout ------------------------------------------------------------- */

static const ms_rule dropout_rule = {"NativeDropoutBackward0",
                                     "aten::native_dropout_backward",
                                     ms_pointwise_one_kernel};
static const ms_rule dropout_mul_rule = {"MulBackward0", "aten::mul",
                                         ms_pointwise_one_kernel};

static uint32_t mask_of(ms_trace *trace, uint32_t x, uint8_t dtype)
{
    if (trace->err)
        return MS_NONE;
    const ms_tensor *tensor = ms_trace_at(trace, x);
    return ms_trace_make(trace, "mask", dtype, tensor->n_dims, tensor->size);
}

/* On CUDA dropout is one kernel with a mask of 1 byte per element, allocated
 * before the output.  On the CPU it is a mask of x's dtype (bernoulli_, div_),
 * then mul. */
uint32_t ms_pointwise_dropout(ms_trace *trace, uint32_t x, double p)
{
    if (trace->err)
        return MS_NONE;
    if (p <= 0 || !trace->settings->train) {
        ms_trace_ref(trace, x);
        return x;
    }
    uint32_t mask, y;
    if (trace->settings->cpu) {
        ms_trace_begin(trace, "aten::bernoulli_");
        mask = mask_of(trace, x, ms_trace_at(trace, x)->dtype);
        ms_trace_end(trace, 0, false);
        y = kernel(trace, "aten::mul", x, mask, x, "out", 1);
    } else {
        ms_trace_begin(trace, "aten::native_dropout");
        ms_trace_read(trace, x);
        mask = mask_of(trace, x, MS_BYTE);
        y = ms_trace_make_like(trace, "out", x);
        ms_trace_end(trace, ms_trace_count(trace, x), false);
    }
    uint32_t n = ms_trace_node(
        trace, trace->settings->cpu ? &dropout_mul_rule : &dropout_rule, &x, 1,
        &y, 1);
    ms_trace_save(trace, n, mask);
    ms_trace_drop(trace, mask);
    return y;
}

/* ---- gelu_new ------------------------------------------------------------ */

/* The ops run in Python's order of evaluation (transformers, activations.py,
 * NewGELUActivation); each temporary ends with the op that reads it. */
uint32_t ms_pointwise_gelu_new(ms_trace *trace, uint32_t x)
{
    uint32_t half = ms_pointwise_mul_scalar(trace, x);
    uint32_t cube = ms_pointwise_pow(trace, x);
    uint32_t scaled = ms_pointwise_mul_scalar(trace, cube);
    ms_trace_drop(trace, cube);
    uint32_t sum = ms_pointwise_add(trace, x, scaled);
    ms_trace_drop(trace, scaled);
    uint32_t inner = ms_pointwise_mul_scalar(trace, sum);
    ms_trace_drop(trace, sum);
    uint32_t tanh = ms_pointwise_unary(trace, &ms_pointwise_tanh, inner);
    ms_trace_drop(trace, inner);
    uint32_t one = ms_pointwise_add_scalar(trace, tanh);
    ms_trace_drop(trace, tanh);
    uint32_t y = ms_pointwise_mul(trace, half, one);
    ms_trace_drop(trace, half);
    ms_trace_drop(trace, one);
    return y;
}
