/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/trace/opend.h"
#include "sim/graph.h"

#include <math.h>

static uint32_t few(double number)
{
    return number < (double)UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

/* The op that ends, or NULL. */
static ms_op_end *end(ms_trace *trace, double flops, ms_op_work work)
{
    ms_trace_end(trace, flops, true);
    if (trace->err)
        return NULL;
    ms_op_end *op = &trace->ends[trace->graph->n_ops - 1];
    op->work = (uint8_t)work;
    return op;
}

static void end_product(ms_trace *trace, double flops, ms_op_work work,
                        uint32_t y)
{
    ms_op_end *op = end(trace, flops, work);
    if (op == NULL)
        return;
    const ms_tensor *made = ms_trace_at(trace, y);
    double elements = (double)ms_trace_elements(made);
    uint32_t n_dims = made->n_dims;
    op->m = n_dims > 1 ? few((double)made->size[n_dims - 2]) : 1;
    op->n = n_dims > 0 ? few((double)made->size[n_dims - 1]) : 1;
    op->k = elements > 0 ? few(flops / 2 / elements + 0.5) : 0;
}

void ms_opend_product(ms_trace *trace, double flops, uint32_t y)
{
    end_product(trace, flops, MS_WORK_PRODUCT, y);
}

void ms_opend_grouped(ms_trace *trace, double flops, uint32_t y, double groups)
{
    end_product(trace, flops, MS_WORK_GROUPED, y);
    if (trace->err)
        return;
    ms_op_end *op = &trace->ends[trace->graph->n_ops - 1];
    if (ms_trace_at(trace, y)->n_dims == 2)
        op->m = few(ceil((double)op->m / fmax(1, groups)));
}

void ms_opend_fp8(ms_trace *trace, double flops, uint32_t y)
{
    end_product(trace, flops, MS_WORK_FP8, y);
}

static uint8_t least(double x)
{
    return (uint8_t)fmax(1, fmin(x + 0.5, UINT8_MAX));
}

void ms_opend_convolution(ms_trace *trace, double flops, ms_op_work work,
                          const ms_convolved *convolved)
{
    ms_op_end *op = end(trace, flops, work);
    if (op == NULL)
        return;
    double made = convolved->groups * convolved->m * convolved->n;
    op->m = few(convolved->m);
    op->n = few(convolved->n);
    op->k = made > 0 ? few(flops / 2 / made + 0.5) : 0;
    op->taps = least(convolved->taps);
    op->stride = least(convolved->stride);
    op->side = least(convolved->side);
}

void ms_opend_attention(ms_trace *trace, ms_op_work work, uint32_t queries,
                        double forward_flops, bool backward)
{
    ms_op_end *op =
        end(trace, backward ? 2.5 * forward_flops : forward_flops, work);
    if (op == NULL)
        return;
    const ms_tensor *q = ms_trace_at(trace, queries);
    double a_key = 4 * (double)ms_trace_elements(q);
    op->m = few((double)q->size[2]);
    op->n = a_key > 0 ? few(forward_flops / a_key + 0.5) : 0;
    op->k = few((double)q->size[3]);
}

/* The elements of a row of x, its last dimension, and the bytes of one. */
static void row_of(ms_trace *trace, uint32_t x, ms_op_end *op)
{
    const ms_tensor *tensor = ms_trace_at(trace, x);
    uint32_t n_dims = tensor->n_dims;
    op->k = n_dims > 0 ? few((double)tensor->size[n_dims - 1]) : 1;
    op->m = ms_dtypes_bytes[tensor->dtype];
}

void ms_opend_rows(ms_trace *trace, double flops, uint32_t x, ms_op_work work)
{
    ms_trace_end(trace, flops, false);
    if (trace->err || trace->kernels.keeps_rows)
        return;
    ms_op_end *op = &trace->ends[trace->graph->n_ops - 1];
    op->work = (uint8_t)work;
    row_of(trace, x, op);
}

void ms_opend_plain(ms_trace *trace, double flops, ms_op_work work)
{
    ms_trace_end(trace, flops, false);
    if (!trace->err)
        trace->ends[trace->graph->n_ops - 1].work = (uint8_t)work;
}

void ms_opend_cast(ms_trace *trace, double flops, uint32_t x)
{
    ms_trace_end(trace, flops, false);
    if (trace->err)
        return;
    ms_op_end *op = &trace->ends[trace->graph->n_ops - 1];
    op->work = MS_WORK_CAST;
    row_of(trace, x, op);
    op->m += ms_dtypes_bytes[MS_FLOAT8];
}
