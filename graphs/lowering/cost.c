/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Roofline: an op takes the longer of its FLOPs at the rate that products of
 * its size reach and its bytes at the rate that transfers of their size
 * reach, plus the gap between two kernels.
 *
 * The shapes of the two curves are Calculon's (calculon-ai/calculon,
 * systems/a100_80g.json: matrix efficiency by GFLOP 0.1 / 0.6 / 0.9 / 0.95 at
 * <1 / 1 / 16 / 128, memory by MB 0.3 / 0.6 / 0.75 / 0.9 at <1 / 1 / 10 / 100),
 * interpolated so that time grows without steps; the top of the first is the
 * device's own measured share of its dense peak (maximum achievable matmul
 * FLOP/s, stas00/ml-engineering). */
#include "graphs/formats/precisions.h"
#include "graphs/lowering/lower.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

typedef struct curve_point {
    double size, share;
} curve_point;

static const curve_point matrix_curve[] = {
    {0, 0.02}, {0.1e9, 0.10}, {1e9, 0.60}, {16e9, 0.90}, {128e9, 0.95},
};
static const curve_point memory_curve[] = {
    {0, 0.20}, {0.1e6, 0.30}, {1e6, 0.60}, {10e6, 0.75}, {100e6, 0.90},
};

#define CURVE_POINTS 5u

static double share_of(const curve_point *curve, double size)
{
    for (uint32_t i = 1; i < CURVE_POINTS; i++) {
        if (size > curve[i].size)
            continue;
        double part =
            (size - curve[i - 1].size) / (curve[i].size - curve[i - 1].size);
        return curve[i - 1].share +
               part * (curve[i].share - curve[i - 1].share);
    }
    return curve[CURVE_POINTS - 1].share;
}

/* Of large products.  Outside the region autocast's are the gradients of those
 * inside. */
static double matrix_flops(const ms_trace *trace, bool fp8)
{
    const ms_device *device = trace->settings->device;
    const ms_precision_row *row = ms_precisions_of(trace->settings->training);
    if (fp8)
        return device->fp8_flops * device->fp8_matmul_share;
    double peak = row->tf32 ? device->tf32_flops : device->fp32_flops;
    if (row->autocast != MS_FLOAT32 ||
        ms_dtypes_bytes[trace->weight_dtype] == 2)
        peak = device->half_flops;
    return peak * device->matmul_share;
}

static uint64_t cost_ns(const ms_trace *trace, uint8_t work, double flops,
                        uint64_t bytes)
{
    const ms_device *device = trace->settings->device;
    double rate = device->fp32_flops;
    if (bytes == 0 && flops <= 0)
        return 0;
    if (work >= MS_WORK_MATRIX)
        rate = matrix_flops(trace, work == MS_WORK_FP8) *
               share_of(matrix_curve, flops) /
               matrix_curve[CURVE_POINTS - 1].share;
    double compute_s = flops / rate;
    double memory_s = (double)bytes / (device->hbm_bytes_per_s *
                                       share_of(memory_curve, (double)bytes));
    double s = compute_s > memory_s ? compute_s : memory_s;
    return device->kernel_ns + (uint64_t)(s * 1e9 + 0.5);
}

void ms_cost_ops(ms_trace *trace)
{
    ms_graph *g = trace->graph;
    for (uint32_t op = 0; op < g->n_ops; op++) {
        const ms_op_end *end = &trace->ends[op];
        if (end->work != MS_WORK_NONE)
            g->op_ns[op] =
                cost_ns(trace, end->work, g->op_flops[op], end->bytes);
    }
}
