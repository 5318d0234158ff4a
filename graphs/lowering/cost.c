/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How long each op takes alone.  Products and attention have models of their
 * own (graphs/machines/times/producttime.h), and so has what memory bounds
 * (memorytime.h), where the device has no curve of its kind (kerneltime.h).
 * Products of a shape that is not told are on a roofline, whose top is the
 * device's own measured share of its dense peak (maximum achievable matmul
 * FLOP/s, stas00/ml-engineering). */
#include "graphs/formats/precisions.h"
#include "graphs/lowering/lower.h"
#include "graphs/machines/hostcode.h"
#include "graphs/machines/times/convolutiontime.h"
#include "graphs/machines/times/kerneltime.h"
#include "graphs/machines/times/memorytime.h"
#include "graphs/machines/times/producttime.h"
#include "graphs/quantized/quantize.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"
#include "sim/kinds.h"

#include <math.h>

/* Of the memory's rate that depthwise convolutions reach, forward and backward:
 * fitted on MobileNet V2 and EfficientNet B2 of times.tsv's half for fits. */
#define DEPTHWISE_SHARE 0.4
#define FEW 4u

/* What ops of a trace are held against. */
typedef struct rates {
    const ms_device *device;
    ms_attention_code flash;
    /* Peaks in the operands' format, as the models take them. */
    double attention_flops, product_flops, fp8_flops;
    double matrix_flops;  /* that large products of other kinds reach */
    double width;         /* bytes of an element of the operands */
    bool by_tensor, tf32; /* tensor cores multiply them; in tf32 */
    ms_product_unit unit;
    bool newest;       /* PyTorch: memorytime.h */
    uint32_t recorded; /* passes whose kernels no host queues */
    double queue_ns;   /* of the others, beside a kernel */
} rates;

/* PyTorch has FlashAttention 1 before 2.2, then 2 (aten/src/ATen/native/
 * transformers/cuda). */
static ms_attention_code flash_of(const ms_trace *trace)
{
    if (trace->kernels.is_hoppers &&
        trace->settings->device->compute_capability >= MS_HOPPER)
        return MS_FLASH_3;
    return trace->settings->framework < MS_TORCH_2 ? MS_FLASH_1 : MS_FLASH_2;
}

static double step_share(const ms_trace *trace)
{
    const ms_device *device = trace->settings->device;
    bool older = trace->settings->framework < MS_TORCH_2;
    return older && device->step_2_0_share > 0 ? device->step_2_0_share
                                               : device->step_share;
}

/* Outside the region autocast's are the gradients of those inside.  What tensor
 * cores draw is more than a device may for long, what fp32 does is not. */
static rates rates_of(const ms_trace *trace)
{
    const ms_device *device = trace->settings->device;
    const ms_precision_row *row = ms_precisions_of(trace->settings->training);
    bool half = row->autocast != MS_FLOAT32 ||
                ms_dtypes_bytes[trace->weight_dtype] == 2;
    double tensor = half ? device->half_flops : device->tf32_flops;
    double fp32 = device->fp32_flops * device->fp32_share;
    double step = step_share(trace);
    bool by_tensor = half || row->tf32;
    return (rates){
        .device = device,
        .flash = flash_of(trace),
        .attention_flops = tensor,
        .product_flops = by_tensor ? tensor * step : fp32,
        .fp8_flops = device->fp8_flops * step,
        .matrix_flops = by_tensor ? tensor * device->matmul_share * step : fp32,
        .width = half ? 2 : 4,
        .by_tensor = by_tensor,
        .tf32 = by_tensor && !half,
        .unit = by_tensor ? MS_UNIT_TENSOR : MS_UNIT_PLAIN,
        .newest = trace->settings->framework >= MS_TORCH_2,
        .recorded = ms_hostcode_recorded(trace->settings->training),
        .queue_ns =
            fmax(0, (double)device->queued_ns - (double)device->kernel_ns)};
}

/* What the time of an op depends on. */
typedef struct task {
    ms_op_end end;
    uint64_t bytes; /* read and written */
    uint64_t written;
    const char *name; /* NULL where the device has no curves by kind */
    double flops;
    uint8_t kind;
    ms_convolution_pass pass;
} task;

static bool is_backward(const task *op)
{
    return op->pass != MS_CONVOLUTION_FORWARD;
}

static double stream_ns(const rates *r, double bytes)
{
    return ms_memorytime_ns(r->device, MS_STREAM, bytes, 0, 0);
}

/* Kernels that go over rows, or over the whole batch. */
static ms_memory_kernel rows_kernel(const rates *r, const task *op)
{
    bool backward = is_backward(op);
    uint8_t work = op->end.work;
    if (op->kind == MS_KIND_BATCH_NORM)
        return backward ? MS_BATCH_NORM_BACKWARD : MS_BATCH_NORM;
    if (work == MS_WORK_ROWS_CENTRED && r->newest)
        return backward ? MS_ROWS_CENTRED_BACKWARD : MS_ROWS_CENTRED;
    if (op->kind == MS_KIND_NORM && r->newest)
        return backward ? MS_ROWS_RMS_BACKWARD : MS_ROWS_RMS;
    if (op->kind == MS_KIND_NORM)
        return backward ? MS_ROWS_NORM_BACKWARD : MS_ROWS_NORM;
    if (!r->newest)
        return backward ? MS_ROWS_SOFTMAX_BACKWARD : MS_ROWS_SOFTMAX;
    if (work == MS_WORK_ROWS_LOG)
        return backward ? MS_ROWS_LOG_BACKWARD : MS_ROWS_LOG;
    return backward ? MS_ROWS_REGISTERS_BACKWARD : MS_ROWS_REGISTERS;
}

/* PyTorch's kernels load vectors where all operands are as the result, or twice
 * as wide (its casts to 16 bits); else an element at a time: of another format,
 * or broadcast, which are few bytes (ATen/native/cuda/CUDALoops.cuh).  Kernels
 * that are not PyTorch's join halves of what they make. */
static bool is_single(const task *op)
{
    uint64_t read = op->bytes - op->written;
    if (op->end.n != 1 || op->written == 0 || read == 0)
        return false;
    uint64_t rest = read % op->written;
    if (op->kind == MS_KIND_POINTWISE)
        return rest > 0 && rest <= op->written / FEW;
    return (op->kind == MS_KIND_ADD || op->kind == MS_KIND_CAST) && rest > 0;
}

static ms_memory_kernel kernel_of(const rates *r, const task *op)
{
    uint8_t kind = op->kind, work = op->end.work;
    if (work == MS_WORK_CAST)
        return MS_CAST;
    if (work == MS_WORK_LISTS)
        return MS_LISTS;
    if (kind == MS_KIND_OPTIMIZER)
        return MS_COLD;
    if (kind == MS_KIND_EMBEDDING || kind == MS_KIND_INDEX)
        return r->newest && !is_backward(op) ? MS_COLD : MS_LOOKUP;
    if (kind == MS_KIND_BATCH_NORM ||
        (work >= MS_WORK_ROWS && work <= MS_WORK_ROWS_LOG))
        return rows_kernel(r, op);
    if (op->end.m == 0)
        return MS_STREAM;
    if (kind == MS_KIND_REDUCTION && is_backward(op) && op->written > 0)
        return MS_COLUMN_SUMS;
    if (kind == MS_KIND_DROPOUT && !is_backward(op))
        return MS_RANDOM;
    if (work == MS_WORK_SCATTERED)
        return MS_SCATTERED;
    return is_single(op) ? MS_SINGLE : MS_STREAM;
}

static double plain_ns(const rates *r, const task *op)
{
    double bytes = (double)op->bytes, row = op->end.k, width = op->end.m;
    uint32_t curve = op->name != NULL ? ms_kernelkinds_of(op->name) : MS_NONE;
    if (curve != MS_NONE && r->device->memory_curves[curve] != NULL)
        return ms_kerneltime_plain_ns(r->device, curve, op->flops, bytes);
    ms_memory_kernel kernel = kernel_of(r, op);
    if (kernel == MS_SINGLE || kernel == MS_SCATTERED)
        row = (double)op->written / width;
    else if (kernel == MS_COLUMN_SUMS)
        row = bytes / (double)op->written - 1;
    else if (kernel == MS_RANDOM)
        row = (bytes - (double)op->written) / width;
    double ns = ms_memorytime_ns(r->device, kernel, bytes, row, width);
    /* Its first kernel multiplies the gradient by the output (SoftMax.cu). */
    if (kernel == MS_ROWS_REGISTERS_BACKWARD)
        ns += r->queue_ns + ms_memorytime_ns(r->device, MS_STREAM, bytes, 0, 0);
    return fmax(ns, (double)r->device->kernel_ns +
                        1e9 * op->flops / r->device->fp32_flops);
}

static double product_ns(const rates *r, const task *op)
{
    double m = op->end.m, n = op->end.n, k = op->end.k;
    ms_product_shape shape = {op->flops / (2 * m * n * k), m, n, k};
    double elements = shape.batch * (m * n + m * k + n * k);
    double made = shape.batch * m * n, share = 1;
    if (op->end.work == MS_WORK_FP8)
        return ms_producttime_ns(r->device, shape, r->fp8_flops,
                                 elements + made, MS_UNIT_FP8);
    if (op->end.work == MS_WORK_GROUPED)
        share = r->device->product.grouped_share;
    else if (r->tf32 && op->pass == MS_CONVOLUTION_WEIGHT)
        share = ms_producttime_turned(r->device);
    return ms_producttime_ns(r->device, shape, r->product_flops * share,
                             r->width * elements, r->unit);
}

static double convolution_ns(const rates *r, const task *op)
{
    double m = op->end.m, n = op->end.n, k = op->end.k;
    const ms_convolution convolution = {
        .product = {op->flops / (2 * m * n * k), m, n, k},
        .pass = op->pass,
        .taps = op->end.taps,
        .stride = op->end.stride,
        .side = op->end.side,
        .is_innermost = op->end.work == MS_WORK_CONVOLUTION,
        .is_turned = op->end.work != MS_WORK_CONVOLUTION && r->by_tensor,
        .is_three = op->end.work == MS_WORK_CONVERTED_THREE};
    return ms_convolutiontime_ns(r->device, &convolution, r->product_flops,
                                 (double)op->bytes, r->unit);
}

static double attention_ns(const rates *r, const task *op)
{
    return ms_producttime_attention_ns(
        r->device,
        op->end.work == MS_WORK_FLASH ? r->flash : MS_ATTENTION_EFFICIENT,
        is_backward(op),
        (ms_attention_shape){op->end.m, op->end.n, op->end.k,
                             (double)op->bytes},
        op->flops, r->attention_flops);
}

static double cost_ns(const rates *r, const task *op)
{
    const ms_op_end *end = &op->end;
    uint8_t work = end->work;
    if (op->bytes == 0 && op->flops <= 0)
        return 0;
    bool told = op->flops > 0 && end->m > 0 && end->n > 0 && end->k > 0;
    if (told && (work == MS_WORK_PRODUCT || work == MS_WORK_FP8 ||
                 work == MS_WORK_GROUPED))
        return product_ns(r, op);
    if (told && r->by_tensor &&
        (work == MS_WORK_FLASH || work == MS_WORK_EFFICIENT))
        return attention_ns(r, op);
    if (told && (work == MS_WORK_CONVOLUTION || work == MS_WORK_CONVERTED ||
                 work == MS_WORK_CONVERTED_THREE))
        return convolution_ns(r, op);
    if (work == MS_WORK_DEPTHWISE)
        return stream_ns(r, (double)op->bytes / DEPTHWISE_SHARE);
    if (work < MS_WORK_MATRIX)
        return plain_ns(r, op);
    return ms_kerneltime_matrix_ns(r->device, r->matrix_flops, op->flops,
                                   (double)op->bytes);
}

/* Most ops are as one of the few before them. */
#define N_KNOWN 64u
typedef struct known {
    task op;
    double ns;
} known;

static known *place_of(known *table, const task *op)
{
    const ms_op_end *end = &op->end;
    uint64_t key =
        (op->bytes ^ ((uint64_t)end->m << 20) ^ ((uint64_t)end->n << 40) ^
         end->k) +
        ((uint64_t)op->kind << 16 | (uint64_t)op->pass << 8 | end->work);
    return &table[key * UINT64_C(0x9e3779b97f4a7c15) >> 58];
}

static bool is_same(const task *a, const task *b)
{
    return a->bytes == b->bytes && a->written == b->written &&
           a->end.m == b->end.m && a->end.n == b->end.n &&
           a->end.k == b->end.k && a->end.taps == b->end.taps &&
           a->end.stride == b->end.stride && a->end.side == b->end.side &&
           a->end.work == b->end.work && a->kind == b->kind &&
           a->pass == b->pass && a->flops == b->flops && a->name == b->name;
}

static ms_convolution_pass pass_of(uint8_t pass)
{
    if (pass <= MS_LOSS)
        return MS_CONVOLUTION_FORWARD;
    return pass == MS_GRAD_WEIGHT ? MS_CONVOLUTION_WEIGHT
                                  : MS_CONVOLUTION_INPUT;
}

/* The FLOPs are others'. */
static uint64_t await(ms_graph *g, const rates *r, task op, uint32_t row)
{
    op.end.work = MS_WORK_FLASH;
    uint64_t ns = (uint64_t)(cost_ns(r, &op) + 0.5);
    g->op_flops[row] = 0;
    return ns > g->op_ns[row] ? ns - g->op_ns[row] : 0;
}

void ms_cost_ops(ms_trace *trace, uint32_t first)
{
    ms_graph *g = trace->graph;
    const rates r = rates_of(trace);
    bool by_kind = r.device->has_memory_curves;
    known table[N_KNOWN] = {{.op.end.work = MS_WORK_NONE}};
    for (uint32_t op = first; op < g->n_ops; op++) {
        if (trace->ends[op].work == MS_WORK_NONE)
            continue;
        const task now = {.end = trace->ends[op],
                          .bytes = g->op_read_bytes[op] + g->op_write_bytes[op],
                          .written = g->op_write_bytes[op],
                          .name = by_kind ? g->op_name[op] : NULL,
                          .flops = g->op_flops[op],
                          .kind = g->op_kind[op],
                          .pass = pass_of(g->op_pass[op])};
        if (now.end.work == MS_WORK_AWAITED) {
            g->op_ns[op] = await(g, &r, now, op);
            continue;
        }
        known *at = place_of(table, &now);
        if (!is_same(&at->op, &now))
            *at = (known){now, cost_ns(&r, &now)};
        bool queued = at->ns > 0 && (r.recorded >> g->op_pass[op] & 1) == 0;
        g->op_ns[op] = (uint64_t)(at->ns + (queued ? r.queue_ns : 0) + 0.5);
    }
}
