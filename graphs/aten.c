/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of aten ops (specs/autograd.md, per-op rule table). */
#include "graphs/aten.h"

#include "graphs/ops/ops.h"

#include <string.h>

/* ---- what an op must have ------------------------------------------------ */

/* A column such as "i0I1o1" names inputs and outputs that are there; I: an
 * input that may be absent. */
static bool has_listed(const ms_aten_row *row, const ms_opnode *node)
{
    for (const char *c = row->saves; *c; c += 2) {
        uint32_t i = (uint32_t)(c[1] - '0');
        if ((c[0] == 'i' && i >= node->n_in) ||
            (c[0] == 'o' && i >= node->n_out))
            return false;
    }
    return node->n_in > 0 && node->n_out > 0;
}

/* Are the integers of argument i dimensions of input 0? */
static bool has_dims(const ms_aten_call *call, uint32_t i)
{
    const ms_opnode *node = call->node;
    int64_t n = node->n_in > 0 ? call->ops->tensors[node->in[0]].n_dims : 0;

    if (i >= node->n_args)
        return true;
    const ms_oparg *arg = &node->args[i];
    if (arg->kind == MS_ARG_INT)
        return arg->value.i >= -n && arg->value.i < n;
    for (uint32_t k = 0; arg->kind == MS_ARG_INTS && k < arg->n; k++)
        if (arg->value.ints[k] < -n || arg->value.ints[k] >= n)
            return false;
    return true;
}

static uint64_t elements(const ms_optensor *tensor)
{
    uint64_t n = 1;

    for (uint32_t d = 0; d < tensor->n_dims; d++)
        n *= (uint64_t)tensor->size[d];
    return n;
}

static bool has_all_elements(const ms_aten_call *call)
{
    const ms_optensor *tensors = call->ops->tensors;
    const ms_opnode *node = call->node;

    return node->n_in > 0 &&
           elements(&tensors[node->in[0]]) == elements(&tensors[node->out[0]]);
}

const char *ms_aten_objection(const ms_aten_row *row, const ms_aten_call *call)
{
    const ms_opnode *node = call->node;

    if (!row->rule)
        return NULL;
    if (!has_listed(row, node))
        return "it has too few inputs or outputs";
    bool reorders = row->rule == &ms_view_transpose_rule ||
                    row->rule == &ms_view_permute_rule ||
                    row->rule == &ms_view_sum_rule;
    if (reorders && (!has_dims(call, 1) || !has_dims(call, 2)))
        return "its argument is no dimension of its input";
    if (row->rule == &ms_view_view_rule && !has_all_elements(call))
        return "its output has not the elements of its input";
    return NULL;
}

/* ---- exceptions to the columns ------------------------------------------- */

/* x * number: the number is saved as a tensor on the CPU (rule 11). */
static void mul_also(ms_trace *trace, const ms_aten_call *call, uint32_t n)
{
    if (n == MS_NONE)
        return;
    ms_node *node = &trace->nodes[n];
    if (call->node->n_in == 1) {
        node->rule = &ms_pointwise_mul_scalar_rule;
        ms_pointwise_save_scalar(trace, n);
        return;
    }
    if (node->needs[1])
        ms_trace_save(trace, n, call->in[0]);
    if (node->needs[0])
        ms_trace_save(trace, n, call->in[1]);
}

static void div_also(ms_trace *trace, const ms_aten_call *call, uint32_t n)
{
    if (n == MS_NONE)
        return;
    if (call->node->n_in == 1) {
        trace->nodes[n].rule = &ms_pointwise_div_scalar_rule;
        ms_pointwise_save_scalar(trace, n);
        return;
    }
    if (trace->nodes[n].needs[1])
        ms_trace_save(trace, n, call->in[0]);
    ms_trace_save(trace, n, call->in[1]);
}

/* Negative dimensions count from the end. */
static int64_t dim_of(const ms_tensor *tensor, int64_t dim)
{
    return dim < 0 ? dim + tensor->n_dims : dim;
}

static int64_t int_arg(const ms_aten_call *call, uint32_t i, int64_t fallback)
{
    const ms_opnode *node = call->node;

    return i < node->n_args && node->args[i].kind == MS_ARG_INT
               ? node->args[i].value.i
               : fallback;
}

static void transpose_also(ms_trace *trace, const ms_aten_call *call,
                           uint32_t n)
{
    if (n == MS_NONE)
        return;
    const ms_tensor *x = ms_trace_at(trace, call->in[0]);
    trace->nodes[n].i[0] = dim_of(x, int_arg(call, 1, 0));
    trace->nodes[n].i[1] = dim_of(x, int_arg(call, 2, 1));
}

static void permute_also(ms_trace *trace, const ms_aten_call *call, uint32_t n)
{
    const ms_opnode *node = call->node;

    if (n == MS_NONE || node->n_args < 2 || node->args[1].kind != MS_ARG_INTS)
        return;
    const ms_tensor *x = ms_trace_at(trace, call->in[0]);
    int64_t packed = 0;
    for (uint32_t d = 0; d < node->args[1].n && d < MS_MAX_DIMS; d++)
        packed |= dim_of(x, node->args[1].value.ints[d]) << 4 * d;
    trace->nodes[n].i[0] = packed;
}

/* mean(dim) keeps its input up to torch 2.1. */
static void mean_also(ms_trace *trace, const ms_aten_call *call, uint32_t n)
{
    if (trace->framework < MS_TORCH_2)
        ms_trace_save(trace, n, call->in[0]);
}

static void conv_also(ms_trace *trace, const ms_aten_call *call, uint32_t n)
{
    const ms_opnode *node = call->node;

    if (n == MS_NONE)
        return;
    trace->nodes[n].i[0] = node->n_args > 6 && node->args[6].value.i;
}

/* relu6_ and silu_ save a fresh clone of what they overwrite (rule 12). */
static void clone_also(ms_trace *trace, const ms_aten_call *call, uint32_t n)
{
    if (n == MS_NONE)
        return;
    uint32_t clone = ms_trace_make_like(trace, "clone", call->in[0]);
    ms_trace_save(trace, n, clone);
    ms_trace_drop(trace, clone);
}

static void sum_also(ms_trace *trace, const ms_aten_call *call, uint32_t n)
{
    const ms_opnode *node = call->node;

    if (n == MS_NONE)
        return;
    trace->nodes[n].i[0] = -1; /* all */
    if (node->n_args < 2 || node->args[1].kind != MS_ARG_INTS ||
        node->args[1].n == 0)
        return;
    trace->nodes[n].i[0] = 0;
    const ms_tensor *x = ms_trace_at(trace, call->in[0]);
    for (uint32_t i = 0; i < node->args[1].n; i++)
        trace->nodes[n].i[0] |= INT64_C(1)
                                << dim_of(x, node->args[1].value.ints[i]);
}

/* ---- the table ----------------------------------------------------------- */

/* Rows whose rule is one of the shared backward functions. */
#define RULE(node, op, backward)                                               \
    &(const ms_rule)                                                           \
    {                                                                          \
        node "Backward0", "aten::" op, ms_pointwise_##backward                 \
    }
#define ELEMENT(name, node, op, saves)                                         \
    {                                                                          \
        name, NULL, RULE(node, op, one_kernel), "0", saves, false, NULL        \
    }
#define ELEMENT1(name, node, op, saves)                                        \
    {                                                                          \
        name, NULL, RULE(node, op, one_temporary), "0", saves, false, NULL     \
    }
#define ELEMENT2(name, node, op, saves)                                        \
    {                                                                          \
        name, NULL, RULE(node, op, two_temporaries), "0", saves, false, NULL   \
    }
#define VIEW(name, rule)                                                       \
    {                                                                          \
        name, NULL, rule, "0", "", false, NULL                                 \
    }
#define CONSTANT(name)                                                         \
    {                                                                          \
        name, NULL, NULL, "", "", false, NULL                                  \
    }
#define UNARY(name, kind, saves)                                               \
    {                                                                          \
        name, NULL, &ms_pointwise_##kind.rule, "0", saves, false, NULL         \
    }

const ms_aten_row ms_aten_rows[] = {
    /* views */
    VIEW("view", &ms_view_view_rule),
    VIEW("_unsafe_view", &ms_view_view_rule),
    VIEW("_reshape_alias", &ms_view_view_rule),
    VIEW("unsqueeze", &ms_view_view_rule),
    VIEW("squeeze", &ms_view_view_rule),
    VIEW("alias", &ms_view_clone_rule),
    VIEW("expand", &ms_view_clone_rule),
    VIEW("slice", &ms_view_slice_rule),
    VIEW("select", &ms_view_select_rule),
    VIEW("split", &ms_view_split_rule),
    VIEW("split_with_sizes", &ms_view_split_rule),
    VIEW("unbind", &ms_view_split_rule),
    {"t", NULL, &ms_view_transpose_rule, "0", "", false, transpose_also},
    {"transpose", NULL, &ms_view_transpose_rule, "0", "", false,
     transpose_also},
    {"permute", NULL, &ms_view_permute_rule, "0", "", false, permute_also},
    {"detach", NULL, NULL, "", "", false, NULL},
    /* copies */
    {"clone", NULL, &ms_view_clone_rule, "0", "", false, NULL},
    {"_to_copy", NULL, &ms_pointwise_cast_rule, "0", "", false, NULL},
    {"cat", NULL, &ms_view_cat_rule, "*", "", false, NULL},
    {"copy_", NULL, &ms_assign_copy_rule, "01", "", false, NULL},
    /* made from nothing */
    CONSTANT("arange"),
    CONSTANT("empty"),
    CONSTANT("empty_like"),
    CONSTANT("zeros"),
    CONSTANT("zeros_like"),
    CONSTANT("ones"),
    CONSTANT("ones_like"),
    CONSTANT("full"),
    CONSTANT("eq"),
    CONSTANT("ne"),
    CONSTANT("ge"),
    CONSTANT("gt"),
    CONSTANT("le"),
    CONSTANT("lt"),
    CONSTANT("triu"),
    CONSTANT("bernoulli_"),
    CONSTANT("div_"),
    CONSTANT("scalar_tensor"),
    CONSTANT("bitwise_not"),
    CONSTANT("logical_not"),
    CONSTANT("argmax"),
    CONSTANT("lift_fresh"),
    /* element by element */
    UNARY("relu", relu, "o0"),
    UNARY("relu_", relu, "o0"),
    UNARY("gelu", gelu, "i0"),
    UNARY("silu", silu, "i0"),
    UNARY("sigmoid", sigmoid, "o0"),
    UNARY("sigmoid_", sigmoid, "o0"),
    UNARY("tanh", tanh, "o0"),
    UNARY("tanh_", tanh, "o0"),
    UNARY("exp", exp, "o0"),
    UNARY("log", log, "i0"),
    UNARY("neg", neg, ""),
    {"rsqrt", NULL, &ms_pointwise_rsqrt_rule, "0", "o0", false, NULL},
    {"sqrt", NULL, &ms_pointwise_sqrt_rule, "0", "o0", false, NULL},
    {"pow", NULL, &ms_pointwise_pow_rule, "0", "i0", false, NULL},
    {"add", NULL, &ms_pointwise_add_rule, "01", "", false, NULL},
    {"add_", NULL, &ms_pointwise_add_rule, "01", "", false, NULL},
    {"mul", NULL, &ms_pointwise_mul_rule, "01", "", false, mul_also},
    {"div", NULL, &ms_pointwise_div_rule, "01", "", false, div_also},
    {"masked_fill", NULL, &ms_pointwise_masked_fill_rule, "0", "i1", false,
     NULL},
    ELEMENT("leaky_relu", "LeakyRelu", "leaky_relu_backward", "i0"),
    ELEMENT("leaky_relu_", "LeakyRelu", "leaky_relu_backward", "o0"),
    ELEMENT("elu", "Elu", "elu_backward", "i0"),
    ELEMENT("elu_", "Elu", "elu_backward", "o0"),
    ELEMENT("celu", "Elu", "elu_backward", "i0"),
    ELEMENT("mish", "Mish", "mish_backward", "i0"),
    ELEMENT("softplus", "Softplus", "softplus_backward", "i0"),
    ELEMENT("hardtanh", "Hardtanh", "hardtanh_backward", "i0"),
    ELEMENT("hardswish", "Hardswish", "hardswish_backward", "i0"),
    ELEMENT("hardsigmoid", "Hardsigmoid", "hardsigmoid_backward", "i0"),
    ELEMENT("glu", "Glu", "glu_backward", "i0"),
    ELEMENT("log_sigmoid_forward", "LogSigmoid", "log_sigmoid_backward",
            "i0o1"),
    {"native_dropout", "masked",
     RULE("NativeDropout", "native_dropout_backward", one_kernel), "0", "i1",
     false, NULL},
    ELEMENT("native_dropout", "NativeDropout", "native_dropout_backward", "o1"),
    ELEMENT("tril", "Tril", "tril", ""),
    ELEMENT("flip", "Flip", "flip", ""),
    ELEMENT("roll", "Roll", "roll", ""),
    ELEMENT("repeat", "Repeat", "sum", ""),
    ELEMENT("constant_pad_nd", "ConstantPadNd", "constant_pad_nd", ""),
    ELEMENT("pixel_shuffle", "PixelShuffle", "pixel_unshuffle", ""),
    ELEMENT("upsample_nearest2d", "UpsampleNearest2D",
            "upsample_nearest2d_backward", ""),
    ELEMENT("upsample_bilinear2d", "UpsampleBilinear2D",
            "upsample_bilinear2d_backward", ""),
    ELEMENT("gather", "Gather", "gather_backward", "i0i1"),
    ELEMENT("index_select", "IndexSelect", "index_select_backward", "i1"),
    {"index", NULL, &ms_indexed_index_rule, "0", "i1I2I3", false, NULL},
    ELEMENT("topk", "Topk", "value_selecting_reduction_backward", "o1"),
    ELEMENT("sort", "Sort", "value_selecting_reduction_backward", "o1"),
    ELEMENT1("abs", "Abs", "sgn", "i0"),
    ELEMENT1("sin", "Sin", "cos", "i0"),
    ELEMENT2("cos", "Cos", "sin", "i0"),
    ELEMENT2("reciprocal", "Reciprocal", "mul", "o0"),
    {"hardtanh_", NULL, RULE("Hardtanh", "hardtanh_backward", one_kernel), "0",
     "", false, clone_also},
    {"silu_", NULL, RULE("Silu", "silu_backward", one_kernel), "0", "", false,
     clone_also},
    {"sub", NULL, &ms_pointwise_sub_rule, "01", "", false, NULL},
    {"where", NULL, &ms_indexed_where_rule, "12", "i0", false, NULL},
    /* reductions and norms */
    {"sum", NULL, &ms_view_sum_rule, "0", "", false, sum_also},
    {"max", "dim",
     RULE("Max", "value_selecting_reduction_backward", one_kernel), "0", "o1",
     false, NULL},
    {"linalg_vector_norm", NULL, &ms_reduce_vector_norm_rule, "0", "i0o0",
     false, NULL},
    {"native_group_norm", NULL, &ms_norm_group_norm_rule, "012", "i0I1o1o2",
     false, NULL},
    {"mean", "dim", &ms_loss_mean_rule, "0", "", false, mean_also},
    {"mean", NULL, &ms_loss_mean_rule, "0", "", false, NULL},
    {"_softmax", NULL, &ms_norm_softmax_rule, "0", "o0", false, NULL},
    {"_log_softmax", NULL, &ms_loss_log_softmax_rule, "0", "o0", false, NULL},
    {"native_layer_norm", NULL, &ms_norm_layer_norm_rule, "012", "i0I1I2o1o2",
     false, NULL},
    {"native_batch_norm", NULL, &ms_norm_batch_norm_rule, "012", "i0I1I3I4o1o2",
     false, NULL},
    /* products */
    {"mm", NULL, &ms_matmul_mm_rule, "01", "i0i1", true, NULL},
    {"addmm", NULL, &ms_matmul_addmm_rule, "012", "i2i1", true, NULL},
    {"bmm", NULL, &ms_matmul_bmm_rule, "01", "i0i1", true, NULL},
    {"convolution", NULL, &ms_conv_rule, "012", "i0i1", true, conv_also},
    /* pooling */
    {"max_pool2d_with_indices", NULL, &ms_conv_max_pool_rule, "0", "i0o1",
     false, NULL},
    {"_adaptive_avg_pool2d", NULL, &ms_conv_avg_pool_rule, "0", "i0", false,
     NULL},
    {"avg_pool2d", NULL, &ms_conv_avg_pool_rule, "0", "i0", false, NULL},
    /* look-ups and losses */
    {"embedding", NULL, &ms_lookup_embedding_rule, "0", "i1", false, NULL},
    {"nll_loss_forward", NULL, &ms_loss_nll_loss_rule, "0", "i0i1o1", false,
     NULL},
    {"nll_loss2d_forward", NULL, &ms_loss_nll_loss_rule, "0", "i0i1o1", false,
     NULL},
    {"mse_loss", NULL, &ms_loss_mse_rule, "0", "i0i1", false, NULL},
};
const uint32_t ms_aten_n_rows = sizeof ms_aten_rows / sizeof *ms_aten_rows;

const ms_aten_row *ms_aten_find(const char *op, const char *overload)
{
    for (uint32_t i = 0; i < ms_aten_n_rows; i++) {
        const ms_aten_row *row = &ms_aten_rows[i];
        if (strcmp(row->op, op) == 0 &&
            (!row->overload || strcmp(row->overload, overload) == 0))
            return row;
    }
    return NULL;
}

/* ---- recording ----------------------------------------------------------- */

static void save_listed(ms_trace *trace, const ms_aten_row *row,
                        const ms_aten_call *call, uint32_t n)
{
    for (const char *c = row->saves; *c; c += 2) {
        uint32_t i = (uint32_t)(c[1] - '0');
        if (c[0] != 'o' && i < call->node->n_in)
            ms_trace_save(trace, n, call->in[i]);
        else if (c[0] == 'o' && i < call->node->n_out)
            ms_trace_save(trace, n, call->out[i]);
    }
}

void ms_aten_record(ms_trace *trace, const ms_aten_row *row,
                    const ms_aten_call *call)
{
    uint32_t listed[10], n_inputs = 0;
    bool all = row->inputs[0] == '*';

    if (!row->rule || trace->err)
        return;
    if (row->rule == &ms_assign_copy_rule && call->whole != MS_NONE) {
        ms_assign_slice(trace, call->whole, call->in[0], call->in[1],
                        call->out[0]);
        return;
    }
    for (const char *c = row->inputs; *c && !all; c++) {
        uint32_t i = (uint32_t)(*c - '0');
        if (i < call->node->n_in)
            listed[n_inputs++] = call->in[i];
    }
    /* Only the first output of a norm or a pool takes part in backward; all
     * pieces of a split do. */
    bool pieces = row->rule == &ms_view_split_rule;
    uint32_t n = ms_trace_node(trace, row->rule, all ? call->in : listed,
                               all ? call->node->n_in : n_inputs, call->out,
                               pieces ? call->node->n_out : 1);
    if (n == MS_NONE)
        return;
    trace->nodes[n].flops = call->node->flops > 0 ? call->node->flops : 0;
    save_listed(trace, row, call, n);
    if (row->also)
        row->also(trace, call, n);
}

/* ---- help ---------------------------------------------------------------- */

static void describe_saves(const ms_aten_row *row, ms_text *text)
{
    const char *separator = "";

    for (const char *c = row->saves; *c; c += 2) {
        ms_text_add(text, "%s%s%c", separator, *c == 'o' ? "out" : "in", c[1]);
        separator = " ";
    }
    if (row->also)
        ms_text_add(text, "%s%s", separator, "by its arguments");
    else if (!*row->saves)
        ms_text_add(text, "nothing");
}

void ms_aten_describe(ms_text *text)
{
    for (uint32_t i = 0; i < ms_aten_n_rows; i++) {
        const ms_aten_row *row = &ms_aten_rows[i];
        ms_text_add(text, row->rule ? "  %-24s %-30s " : "  %-24s %s", row->op,
                    row->rule ? row->rule->name : "no gradient");
        if (row->rule)
            describe_saves(row, text);
        ms_text_add(text, "\n");
    }
}
