/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How long each op takes alone.  Products and attention have models of their
 * own (graphs/machines/producttime.h), and so has what memory bounds
 * (graphs/machines/memorytime.h).  Products of a shape that is not told are on
 * a roofline: the longer of their bytes and of their FLOPs at the rate that an
 * op of its size reaches.
 *
 * The shape of that curve is Calculon's (calculon-ai/calculon,
 * systems/a100_80g.json: matrix efficiency by GFLOP 0.1 / 0.6 / 0.9 / 0.95 at
 * <1 / 1 / 16 / 128), interpolated so that time grows without steps; its top is
 * the device's own measured share of its dense peak (maximum achievable matmul
 * FLOP/s, stas00/ml-engineering). */
#include "graphs/formats/precisions.h"
#include "graphs/lowering/lower.h"
#include "graphs/machines/memorytime.h"
#include "graphs/machines/producttime.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"
#include "sim/kinds.h"

#include <math.h>

typedef struct curve_point {
    double size, share;
} curve_point;

static const curve_point matrix_curve[] = {
    {0, 0.02}, {0.1e9, 0.10}, {1e9, 0.60}, {16e9, 0.90}, {128e9, 0.95},
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

static double stream_ns(const rates *r, double bytes)
{
    return ms_memorytime_ns(r->device, MS_STREAM, bytes, 0, 0);
}

static double longer_ns(const rates *r, double memory_ns, double compute_s)
{
    return fmax(memory_ns, (double)r->device->kernel_ns + 1e9 * compute_s);
}

static double plain_ns(const rates *r, const ms_op_end *end, uint8_t kind,
                       bool backward, double flops)
{
    ms_memory_kernel kernel = MS_STREAM;
    if (kind == MS_KIND_OPTIMIZER)
        kernel = MS_COLD;
    else if (kind == MS_KIND_EMBEDDING || kind == MS_KIND_INDEX)
        kernel = MS_LOOKUP;
    else if (kind == MS_KIND_BATCH_NORM)
        kernel = backward ? MS_BATCH_NORM_BACKWARD : MS_BATCH_NORM;
    else if (end->work == MS_WORK_ROWS && kind == MS_KIND_NORM)
        kernel = backward ? MS_ROWS_NORM_BACKWARD : MS_ROWS_NORM;
    else if (end->work == MS_WORK_ROWS)
        kernel = backward ? MS_ROWS_SOFTMAX_BACKWARD : MS_ROWS_SOFTMAX;
    double ns =
        ms_memorytime_ns(r->device, kernel, (double)end->bytes, end->k, end->m);
    return longer_ns(r, ns, flops / r->device->fp32_flops);
}

static double matrix_ns(const rates *r, double flops, double bytes)
{
    double rate = r->matrix_flops * share_of(matrix_curve, flops) /
                  matrix_curve[CURVE_POINTS - 1].share;
    return longer_ns(r, stream_ns(r, bytes), flops / rate);
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
        ns += stream_ns(r, 2 * bytes);
    return ns;
}

static double cost_ns(const rates *r, const ms_op_end *end, uint8_t kind,
                      bool backward, double flops)
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
        return stream_ns(r, (double)end->bytes / DEPTHWISE_SHARE);
    if (end->work < MS_WORK_MATRIX)
        return plain_ns(r, end, kind, backward, flops);
    return matrix_ns(r, flops, (double)end->bytes);
}

/* Most ops are as one of the few before them. */
#define N_KNOWN 64u
typedef struct known {
    ms_op_end end;
    double flops, ns;
    uint8_t kind;
    bool backward;
} known;

static known *place_of(known *table, const ms_op_end *end, uint8_t kind,
                       bool backward)
{
    uint64_t key = (end->bytes ^ ((uint64_t)end->m << 20) ^
                    ((uint64_t)end->n << 40) ^ end->k) +
                   ((uint64_t)kind << 16 | (uint64_t)backward << 8 | end->work);
    return &table[key * UINT64_C(0x9e3779b97f4a7c15) >> 58];
}

static bool is_same(const known *at, const ms_op_end *end, uint8_t kind,
                    bool backward, double flops)
{
    return at->end.bytes == end->bytes && at->end.m == end->m &&
           at->end.n == end->n && at->end.k == end->k &&
           at->end.work == end->work && at->kind == kind &&
           at->backward == backward && at->flops == flops;
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
        double flops = g->op_flops[op];
        uint8_t kind = g->op_kind[op];
        bool backward = g->op_pass[op] > MS_LOSS;
        known *at = place_of(table, end, kind, backward);
        if (!is_same(at, end, kind, backward, flops))
            *at = (known){*end, flops, cost_ns(&r, end, kind, backward, flops),
                          kind, backward};
        g->op_ns[op] = (uint64_t)(at->ns + 0.5);
    }
}
