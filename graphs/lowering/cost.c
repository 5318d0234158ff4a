/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How long each op takes alone.  Products and attention have models of their
 * own (graphs/machines/producttime.h).  Any other op is on a roofline: it takes
 * the longer of its FLOPs at the rate that an op of its size reaches and its
 * bytes at the rate that transfers of their size reach, plus the gap between
 * two kernels.
 *
 * The shapes of the two curves are Calculon's (calculon-ai/calculon,
 * systems/a100_80g.json: matrix efficiency by GFLOP 0.1 / 0.6 / 0.9 / 0.95 at
 * <1 / 1 / 16 / 128, memory by MB 0.3 / 0.6 / 0.75 / 0.9 at <1 / 1 / 10 / 100),
 * interpolated so that time grows without steps; the top of the first is the
 * device's own measured share of its dense peak (maximum achievable matmul
 * FLOP/s, stas00/ml-engineering). */
#include "graphs/formats/precisions.h"
#include "graphs/lowering/lower.h"
#include "graphs/machines/producttime.h"
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
/* Of the memory's rate that depthwise convolutions reach, forward and backward:
 * fitted on MobileNet V2 and EfficientNet B2 of times.tsv's half for fits. */
#define DEPTHWISE_SHARE 0.4

/* What ops of a trace are held against. */
typedef struct rates {
    const ms_device *device;
    ms_attention_code flash;
    /* Peaks in the operands' format, as the models take them. */
    double attention_flops, product_flops, fp8_flops;
    double matrix_flops; /* that large products of other kinds reach */
    double width;        /* bytes of an element of the operands */
    bool by_tensor;      /* tensor cores multiply them */
} rates;

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

/* Outside the region autocast's are the gradients of those inside.  What tensor
 * cores draw is more than a device may for long, what fp32 does is not.
 * PyTorch has FlashAttention 1 before 2.2, then 2 (aten/src/ATen/native/
 * transformers/cuda). */
static rates rates_of(const ms_trace *trace)
{
    const ms_device *device = trace->settings->device;
    const ms_precision_row *row = ms_precisions_of(trace->settings->training);
    bool half = row->autocast != MS_FLOAT32 ||
                ms_dtypes_bytes[trace->weight_dtype] == 2;
    double tensor = half ? device->half_flops : device->tf32_flops;
    double fp32 = device->fp32_flops * device->fp32_share;
    bool by_tensor = half || row->tf32;
    return (rates){
        .device = device,
        .flash =
            trace->settings->framework < MS_TORCH_2 ? MS_FLASH_1 : MS_FLASH_2,
        .attention_flops = tensor,
        .product_flops = by_tensor ? tensor * device->step_share : fp32,
        .fp8_flops = device->fp8_flops * device->fp8_matmul_share /
                     device->matmul_share * device->step_share,
        .matrix_flops = by_tensor
                            ? tensor * device->matmul_share * device->step_share
                            : fp32,
        .width = half ? 2 : 4,
        .by_tensor = by_tensor};
}

static double roofline_ns(const rates *r, uint8_t work, double flops,
                          double bytes)
{
    double rate = r->device->fp32_flops;
    if (work >= MS_WORK_MATRIX)
        rate = r->matrix_flops * share_of(matrix_curve, flops) /
               matrix_curve[CURVE_POINTS - 1].share;
    double compute_s = flops / rate;
    double memory_s =
        bytes / (r->device->hbm_bytes_per_s * share_of(memory_curve, bytes));
    return (double)r->device->kernel_ns +
           1e9 * (compute_s > memory_s ? compute_s : memory_s);
}

static double product_ns(const rates *r, const ms_op_end *end, double flops)
{
    double m = end->m, n = end->n, k = end->k;
    ms_product_shape shape = {flops / (2 * m * n * k), m, n, k};
    double elements = shape.batch * (m * n + m * k + n * k);
    if (end->work == MS_WORK_FP8)
        return ms_producttime_ns(r->device, shape, r->fp8_flops, elements,
                                 true);
    return ms_producttime_ns(r->device, shape, r->product_flops,
                             r->width * elements, r->by_tensor);
}

/* What is read of x is read once, not once for each place in the filter. */
static double convolution_ns(const rates *r, const ms_op_end *end, double flops)
{
    double m = end->m, n = end->n, k = end->k, bytes = (double)end->bytes;
    ms_product_shape shape = {flops / (2 * m * n * k), m, n, k};
    double ns = ms_producttime_ns(r->device, shape, r->product_flops, bytes,
                                  r->by_tensor);
    if (end->work == MS_WORK_CONVERTED && r->by_tensor)
        ns += roofline_ns(r, MS_WORK_PLAIN, 0, 2 * bytes);
    return ns;
}

static double cost_ns(const rates *r, const ms_op_end *end, bool backward,
                      double flops)
{
    if (end->bytes == 0 && flops <= 0)
        return 0;
    bool told = flops > 0 && end->m > 0 && end->n > 0 && end->k > 0;
    if (told && (end->work == MS_WORK_PRODUCT || end->work == MS_WORK_FP8))
        return product_ns(r, end, flops);
    if (told && r->by_tensor &&
        (end->work == MS_WORK_FLASH || end->work == MS_WORK_EFFICIENT))
        return ms_producttime_attention_ns(
            r->device,
            end->work == MS_WORK_FLASH ? r->flash : MS_ATTENTION_EFFICIENT,
            backward, end->n, end->k, flops, r->attention_flops);
    if (told &&
        (end->work == MS_WORK_CONVOLUTION || end->work == MS_WORK_CONVERTED))
        return convolution_ns(r, end, flops);
    if (end->work == MS_WORK_DEPTHWISE)
        return roofline_ns(r, MS_WORK_PLAIN, 0,
                           (double)end->bytes / DEPTHWISE_SHARE);
    return roofline_ns(r, end->work, flops, (double)end->bytes);
}

/* Most ops are as one of the few before them. */
#define N_KNOWN 64u
typedef struct known {
    ms_op_end end;
    double flops, ns;
    bool backward;
} known;

static known *place_of(known *table, const ms_op_end *end, bool backward)
{
    uint64_t key = (end->bytes ^ ((uint64_t)end->m << 20) ^
                    ((uint64_t)end->n << 40) ^ end->k) +
                   ((uint64_t)backward << 8 | end->work);
    return &table[key * UINT64_C(0x9e3779b97f4a7c15) >> 58];
}

static bool is_same(const known *at, const ms_op_end *end, bool backward,
                    double flops)
{
    return at->end.bytes == end->bytes && at->end.m == end->m &&
           at->end.n == end->n && at->end.k == end->k &&
           at->end.work == end->work && at->backward == backward &&
           at->flops == flops;
}

void ms_cost_ops(ms_trace *trace, uint32_t first)
{
    ms_graph *g = trace->graph;
    const rates r = rates_of(trace);
    known table[N_KNOWN] = {{.end = {.work = MS_WORK_NONE}}};
    for (uint32_t op = first; op < g->n_ops; op++) {
        const ms_op_end *end = &trace->ends[op];
        if (end->work == MS_WORK_NONE)
            continue;
        bool backward = g->op_pass[op] > MS_LOSS;
        known *at = place_of(table, end, backward);
        if (!is_same(at, end, backward, g->op_flops[op]))
            *at =
                (known){*end, g->op_flops[op],
                        cost_ns(&r, end, backward, g->op_flops[op]), backward};
        g->op_ns[op] = (uint64_t)(at->ns + 0.5);
    }
}
