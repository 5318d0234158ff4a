/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The lists are those of AT_FORALL_LOWER_PRECISION_FP, AT_FORALL_FP32 and
 * AT_FORALL_FP32_SET_OPT_DTYPE, with the names that their members have below
 * autograd. */
#include "graphs/ops/autocast.h"

#include "graphs/ops/ops.h"
#include "graphs/trace/trace.h"

#include <string.h>

typedef struct listed {
    const char *op;
    ms_autocast_kind kind;
} listed;

static const listed list[] = {
    {"mm", MS_AUTOCAST_LOWER},
    {"addmm", MS_AUTOCAST_LOWER},
    {"bmm", MS_AUTOCAST_LOWER},
    {"baddbmm", MS_AUTOCAST_LOWER},
    {"addbmm", MS_AUTOCAST_LOWER},
    {"mv", MS_AUTOCAST_LOWER},
    {"addmv", MS_AUTOCAST_LOWER},
    {"addr", MS_AUTOCAST_LOWER},
    {"linear", MS_AUTOCAST_LOWER},
    {"matmul", MS_AUTOCAST_LOWER},
    {"einsum", MS_AUTOCAST_LOWER},
    {"linalg_vecdot", MS_AUTOCAST_LOWER},
    {"convolution", MS_AUTOCAST_LOWER},
    {"prelu", MS_AUTOCAST_LOWER},
    {"_prelu_kernel", MS_AUTOCAST_LOWER},
    {"scaled_dot_product_attention", MS_AUTOCAST_LOWER},
    {"_scaled_dot_product_flash_attention", MS_AUTOCAST_LOWER},
    {"_scaled_dot_product_efficient_attention", MS_AUTOCAST_LOWER},
    {"_thnn_fused_lstm_cell", MS_AUTOCAST_LOWER},
    {"_thnn_fused_gru_cell", MS_AUTOCAST_LOWER},
    {"lstm", MS_AUTOCAST_LOWER},
    {"gru", MS_AUTOCAST_LOWER},
    {"_cudnn_rnn", MS_AUTOCAST_LOWER},
    {"acos", MS_AUTOCAST_FP32},
    {"asin", MS_AUTOCAST_FP32},
    {"cosh", MS_AUTOCAST_FP32},
    {"erfinv", MS_AUTOCAST_FP32},
    {"exp", MS_AUTOCAST_FP32},
    {"expm1", MS_AUTOCAST_FP32},
    {"log", MS_AUTOCAST_FP32},
    {"log10", MS_AUTOCAST_FP32},
    {"log1p", MS_AUTOCAST_FP32},
    {"log2", MS_AUTOCAST_FP32},
    {"logsumexp", MS_AUTOCAST_FP32},
    {"reciprocal", MS_AUTOCAST_FP32},
    {"rsqrt", MS_AUTOCAST_FP32},
    {"sinh", MS_AUTOCAST_FP32},
    {"tan", MS_AUTOCAST_FP32},
    {"pow", MS_AUTOCAST_FP32},
    {"softplus", MS_AUTOCAST_FP32},
    {"norm", MS_AUTOCAST_FP32},
    {"dist", MS_AUTOCAST_FP32},
    {"renorm", MS_AUTOCAST_FP32},
    {"native_layer_norm", MS_AUTOCAST_FP32},
    {"native_group_norm", MS_AUTOCAST_FP32},
    {"nll_loss_forward", MS_AUTOCAST_FP32},
    {"nll_loss2d_forward", MS_AUTOCAST_FP32},
    {"mse_loss", MS_AUTOCAST_FP32},
    {"smooth_l1_loss", MS_AUTOCAST_FP32},
    {"huber_loss", MS_AUTOCAST_FP32},
    {"binary_cross_entropy_with_logits", MS_AUTOCAST_FP32},
    {"upsample_nearest1d", MS_AUTOCAST_FP32},
    {"upsample_nearest2d", MS_AUTOCAST_FP32},
    {"upsample_nearest3d", MS_AUTOCAST_FP32},
    {"upsample_linear1d", MS_AUTOCAST_FP32},
    {"upsample_bilinear2d", MS_AUTOCAST_FP32},
    {"upsample_bicubic2d", MS_AUTOCAST_FP32},
    {"upsample_trilinear3d", MS_AUTOCAST_FP32},
    {"_softmax", MS_AUTOCAST_FP32_OUT},
    {"_log_softmax", MS_AUTOCAST_FP32_OUT},
    {"sum", MS_AUTOCAST_FP32_OUT},
    {"prod", MS_AUTOCAST_FP32_OUT},
    {"cumsum", MS_AUTOCAST_FP32_OUT},
    {"cumprod", MS_AUTOCAST_FP32_OUT},
    {"linalg_vector_norm", MS_AUTOCAST_FP32_OUT},
};

ms_autocast_kind ms_autocast_of(const char *op)
{
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (strcmp(list[i].op, op) == 0)
            return list[i].kind;
    return MS_AUTOCAST_NONE;
}

const char *ms_autocast_word(const char *op)
{
    static const char *const words[] = {"", "lower", "fp32", "fp32 out"};
    return words[ms_autocast_of(op)];
}

static bool is_half(uint8_t dtype)
{
    return dtype == MS_FLOAT16 || dtype == MS_BFLOAT16;
}

/* ---- casts --------------------------------------------------------------- */

static uint32_t same(ms_trace *trace, uint32_t x)
{
    ms_trace_ref(trace, x);
    return x;
}

/* inference_mode of torch 2.11 keeps no casts; a recomputation finds those of
 * its forward gone or kept as any other tensor that the forward made. */
static bool keeps_casts(const ms_step_settings *settings)
{
    return settings->train || settings->framework < MS_TORCH_2;
}

/* In a graph inside of a node: the same cast, which is of no graph outside. */
static uint32_t cast_inside(ms_trace *trace, uint32_t p, uint32_t x)
{
    trace->keeps_no_graph = true;
    if (trace->parameters[p].cast == MS_NONE)
        trace->parameters[p].cast = ms_cast_to(trace, x, trace->autocast);
    trace->keeps_no_graph = false;
    uint32_t y = ms_trace_alias(trace, trace->parameters[p].cast);
    if (y != MS_NONE)
        ms_trace_node(trace, &ms_cast_rule, &x, 1, &y, 1);
    return y;
}

static uint32_t cast_parameter(ms_trace *trace, uint32_t p, uint32_t x)
{
    if (trace->inner != NULL)
        return cast_inside(trace, p, x);
    if (trace->parameters[p].cast == MS_NONE) {
        uint32_t cast = ms_cast_to(trace, x, trace->autocast);
        if (!keeps_casts(trace->settings) || trace->err)
            return cast;
        trace->parameters[p].cast = cast;
    }
    return same(trace, trace->parameters[p].cast);
}

/* The parameter of which x is a view of all elements, such as its transpose, or
 * MS_NONE. */
static uint32_t shown_parameter(const ms_trace *trace, const ms_tensor *x)
{
    if (!x->view || x->node == MS_NONE)
        return MS_NONE;
    const ms_node *node = &trace->nodes[x->node];
    if (node->n_inputs != 1 || node->n_outputs != 1)
        return MS_NONE;
    const ms_tensor *from = ms_trace_at(trace, node->input[0]);
    bool whole = from->storage == x->storage &&
                 ms_trace_elements(from) == ms_trace_elements(x);
    return whole && from->parameter != MS_NONE ? node->input[0] : MS_NONE;
}

/* Autocast keeps one cast of each parameter, so that linear and its like, which
 * transpose the weight, cast the parameter and transpose the cast. */
static uint32_t view_of_cast(ms_trace *trace, uint32_t x, uint32_t parameter)
{
    ms_tensor view = *ms_trace_at(trace, x);
    const ms_rule *rule = trace->nodes[view.node].rule;
    int64_t i[2];
    memcpy(i, trace->nodes[view.node].i, sizeof i);
    uint32_t cast = ms_autocast_lower(trace, parameter);
    uint32_t y = ms_trace_alias(trace, cast);
    if (y == MS_NONE)
        return y;
    ms_tensor *made = ms_trace_at(trace, y);
    made->n_dims = view.n_dims;
    memcpy(made->size, view.size, sizeof made->size);
    memcpy(made->stride, view.stride, sizeof made->stride);
    uint32_t n = ms_trace_node(trace, rule, &cast, 1, &y, 1);
    if (n != MS_NONE)
        memcpy(trace->nodes[n].i, i, sizeof i);
    ms_trace_drop(trace, cast);
    return y;
}

uint32_t ms_autocast_lower(ms_trace *trace, uint32_t x)
{
    if (trace->err || x == MS_NONE)
        return MS_NONE;
    const ms_tensor *tensor = ms_trace_at(trace, x);
    if (trace->autocast == MS_FLOAT32 || tensor->dtype != MS_FLOAT32)
        return same(trace, x);
    if (tensor->parameter != MS_NONE)
        return cast_parameter(trace, tensor->parameter, x);
    uint32_t parameter = shown_parameter(trace, tensor);
    if (parameter != MS_NONE)
        return view_of_cast(trace, x, parameter);
    return ms_cast_to(trace, x, trace->autocast);
}

uint32_t ms_autocast_raise(ms_trace *trace, uint32_t x)
{
    if (trace->err || x == MS_NONE)
        return MS_NONE;
    if (trace->autocast == MS_FLOAT32 || !is_half(ms_trace_at(trace, x)->dtype))
        return same(trace, x);
    return ms_cast_to(trace, x, MS_FLOAT32);
}

/* softmax reads bf16 through a cast: only fp16 has the mixed kernel. */
static bool casts_first(const ms_trace *trace, const char *op, uint32_t x)
{
    return ms_trace_at(trace, x)->dtype == MS_BFLOAT16 &&
           (strcmp(op, "_softmax") == 0 || strcmp(op, "_log_softmax") == 0);
}

uint32_t ms_autocast_input(ms_trace *trace, const char *op, uint32_t x)
{
    if (trace->err || x == MS_NONE)
        return MS_NONE;
    switch (trace->autocast == MS_FLOAT32 ? MS_AUTOCAST_NONE
                                          : ms_autocast_of(op)) {
    case MS_AUTOCAST_LOWER:
        return ms_autocast_lower(trace, x);
    case MS_AUTOCAST_FP32:
        return ms_autocast_raise(trace, x);
    case MS_AUTOCAST_FP32_OUT:
        if (casts_first(trace, op, x))
            return ms_autocast_raise(trace, x);
        break;
    case MS_AUTOCAST_NONE:
        break;
    }
    return same(trace, x);
}

void ms_autocast_enter(ms_trace *trace, const char *op, uint32_t n,
                       const uint32_t *x, uint32_t *read)
{
    for (uint32_t i = 0; i < n; i++)
        read[i] = ms_autocast_input(trace, op, x[i]);
}

void ms_autocast_exit(ms_trace *trace, uint32_t n, const uint32_t *read)
{
    for (uint32_t i = 0; i < n; i++)
        ms_trace_drop(trace, read[i]);
}

uint8_t ms_autocast_dtype(const ms_trace *trace, const char *op, uint8_t dtype)
{
    if (trace->autocast == MS_FLOAT32 || !is_half(dtype))
        return dtype;
    ms_autocast_kind kind = ms_autocast_of(op);
    bool widens = kind == MS_AUTOCAST_FP32 || kind == MS_AUTOCAST_FP32_OUT;
    return widens ? MS_FLOAT32 : dtype;
}

void ms_autocast_leave(ms_trace *trace)
{
    for (uint32_t p = 0; p < trace->n_parameters && !trace->err; p++) {
        ms_trace_drop(trace, trace->parameters[p].cast);
        trace->parameters[p].cast = MS_NONE;
    }
    trace->autocast = MS_FLOAT32;
}
