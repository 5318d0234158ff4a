/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the columns of the op tables cannot say, because it depends on
 * arguments. */
#include "graphs/aten/aten.h"
#include "graphs/ops/ops.h"
#include "graphs/trace/trace.h"

#include <string.h>

/* ---- products with a number ---------------------------------------------- */

/* x * number: the number is saved as a tensor on the CPU (graphs/autograd.md
 * 10), except where C++ calls the overload for numbers. */
static void by_number(ms_trace *trace, const ms_aten_call *call, uint32_t n,
                      const ms_rule *rule)
{
    trace->nodes[n].rule = rule;
    if (strcmp(call->node->overload, "Scalar") != 0)
        ms_pointwise_save_scalar(trace, n);
}

void ms_atenexceptions_mul(ms_trace *trace, const ms_aten_call *call,
                           uint32_t n)
{
    if (call->node->n_in == 1) {
        by_number(trace, call, n, &ms_pointwise_mul_scalar_rule);
        return;
    }
    if (trace->nodes[n].needs[1])
        ms_aten_save_input(trace, call, n, 0);
    if (trace->nodes[n].needs[0])
        ms_aten_save_input(trace, call, n, 1);
}

void ms_atenexceptions_div(ms_trace *trace, const ms_aten_call *call,
                           uint32_t n)
{
    if (call->node->n_in == 1) {
        by_number(trace, call, n, &ms_pointwise_div_scalar_rule);
        return;
    }
    if (trace->nodes[n].needs[1])
        ms_aten_save_input(trace, call, n, 0);
    ms_aten_save_input(trace, call, n, 1);
}

/* ---- another rule -------------------------------------------------------- */

static const ms_formula clamp_1 = {
    {"ClampBackward1", NULL, ms_formula_backward}, "0: ge.i0b where.g!"};
static const ms_formula norm_1 = {{"NormBackward1", NULL, ms_formula_backward},
                                  "0: sgn.i0 mul.i0!"};
static const ms_formula norm_3 = {{"NormBackward1", NULL, ms_formula_backward},
                                  "0: abs.i0 mul.i0 mul.i0!"};
static const ms_formula accumulate = {
    {"IndexPutBackward0", NULL, ms_formula_backward}, "0: pass!; 1: index.i1!"};
static const ms_formula weighted = {
    {"BinaryCrossEntropyWithLogitsBackward0", NULL, ms_formula_backward},
    "0: mul.i0 add.i0! sigmoid.i0"};

static bool is_none(const ms_opnode *node, uint32_t i)
{
    return i >= node->n_args || node->args[i].kind == MS_ARG_NONE;
}

/* With one bound backward makes one mask, with two it makes two. */
void ms_atenexceptions_clamp(ms_trace *trace, const ms_aten_call *call,
                             uint32_t n)
{
    if (is_none(call->node, 1) || is_none(call->node, 2))
        trace->nodes[n].rule = &clamp_1.rule;
}

/* The power is 2 where none is given. */
void ms_atenexceptions_norm(ms_trace *trace, const ms_aten_call *call,
                            uint32_t n)
{
    const ms_opnode *node = call->node;
    int64_t power = ms_aten_int(node, 1, 2);
    if (node->n_args > 1 && node->args[1].kind == MS_ARG_FLOAT)
        power = (int64_t)node->args[1].value.f;
    if (power == 1)
        trace->nodes[n].rule = &norm_1.rule;
    else if (power != 2)
        trace->nodes[n].rule = &norm_3.rule;
}

/* Backward of accumulate=True passes the gradient on as it is. */
void ms_atenexceptions_index_put(ms_trace *trace, const ms_aten_call *call,
                                 uint32_t n)
{
    const ms_opnode *node = call->node;
    if (node->n_args > 3 && node->args[3].kind == MS_ARG_BOOL &&
        node->args[3].value.i)
        trace->nodes[n].rule = &accumulate.rule;
}

/* With pos_weight backward does more than the sigmoid. */
void ms_atenexceptions_logits(ms_trace *trace, const ms_aten_call *call,
                              uint32_t n)
{
    if (call->node->n_args > 3 && call->node->args[3].kind == MS_ARG_TENSOR)
        trace->nodes[n].rule = &weighted.rule;
}

/* ---- what backward must remember ----------------------------------------- */

/* Negative dimensions count from the end. */
static int64_t dim_of(const ms_tensor *tensor, int64_t dim)
{
    return dim < 0 ? dim + tensor->n_dims : dim;
}

void ms_atenexceptions_transpose(ms_trace *trace, const ms_aten_call *call,
                                 uint32_t n)
{
    const ms_tensor *x = ms_trace_at(trace, call->in[0]);
    trace->nodes[n].i[0] = dim_of(x, ms_aten_int(call->node, 1, 0));
    trace->nodes[n].i[1] = dim_of(x, ms_aten_int(call->node, 2, 1));
}

void ms_atenexceptions_permute(ms_trace *trace, const ms_aten_call *call,
                               uint32_t n)
{
    const ms_opnode *node = call->node;
    const ms_tensor *x = ms_trace_at(trace, call->in[0]);
    int64_t packed = 0;
    if (node->n_args < 2 || node->args[1].kind != MS_ARG_INTS)
        return;
    for (uint32_t d = 0; d < node->args[1].n && d < MS_MAX_DIMS; d++)
        packed |= dim_of(x, node->args[1].value.ints[d]) << 4 * d;
    trace->nodes[n].i[0] = packed;
}

void ms_atenexceptions_stack(ms_trace *trace, const ms_aten_call *call,
                             uint32_t n)
{
    int64_t dim = ms_aten_int(call->node, 1, 0);
    const ms_tensor *x = ms_trace_at(trace, call->in[0]);
    trace->nodes[n].i[0] = dim < 0 ? dim + x->n_dims + 1 : dim;
}

void ms_atenexceptions_sum(ms_trace *trace, const ms_aten_call *call,
                           uint32_t n)
{
    const ms_opnode *node = call->node;
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

/* mean(dim) keeps its input up to torch 2.1. */
void ms_atenexceptions_mean(ms_trace *trace, const ms_aten_call *call,
                            uint32_t n)
{
    if (trace->settings->framework < MS_TORCH_2)
        ms_trace_save(trace, n, call->in[0]);
}

void ms_atenexceptions_convolution(ms_trace *trace, const ms_aten_call *call,
                                   uint32_t n)
{
    const ms_opnode *node = call->node;
    trace->nodes[n].i[0] = node->n_args > 6 && node->args[6].value.i;
}
