/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/quantized/packed.h"
#include "graphs/formats/precisions.h"
#include "graphs/ops/ops.h"
#include "graphs/trace/opend.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

/* ---- formats ------------------------------------------------------------- */

/* A format has so many bits for each element, a scale and in some formats a
 * zero point for each group of elements (a group of 0 is a whole row), and some
 * bytes for the whole tensor. */
typedef struct format {
    uint8_t bits, scale_bytes, zero_bits;
    uint16_t group;
    uint16_t nested; /* so many scales share one scale of fp32, by which they
                        are quantized; 0: they are not quantized */
    uint16_t also_bytes; /* of the codes and of the mean of the scales */
} format;

/* In the order of the words of lora.base and frozen.base, without the first
 * word. nf4: bitsandbytes/functional.py, quantize_4bit: a maximum for each 64
 * elements, with double quantisation in 8 bits with an fp32 scale per 256 of
 * them and their mean, and 16 fp32 codes. int8: bitsandbytes, Linear8bitLt, a
 * scale per row. int4: casper-hansen/AutoAWQ, awq/modules/linear/gemm.py: a
 * 16-bit scale and a zero point of 4 bits per 128 elements. */
static const format formats[] = {
    {.bits = 4,
     .scale_bytes = 1,
     .group = 64,
     .nested = 256,
     .also_bytes = 4 + 16 * 4},
    {.bits = 8, .scale_bytes = 4},
    {.bits = 4, .scale_bytes = 4, .group = 64, .also_bytes = 16 * 4},
    {.bits = 4, .scale_bytes = 2, .zero_bits = 4, .group = 128},
};

static int64_t base_of(const ms_training *training)
{
    return training->lora_rank > 0 ? training->lora_base
                                   : training->frozen_base;
}

static const format *format_of(const ms_step_settings *settings)
{
    return &formats[base_of(settings->training) - 1];
}

static uint64_t over(uint64_t n, uint64_t by)
{
    return n / by + (n % by != 0);
}

static uint64_t groups_of(const format *how, const ms_tensor *weight)
{
    uint64_t n = ms_trace_elements(weight);
    return how->group > 0 ? over(n, how->group) : (uint64_t)weight->size[0];
}

static uint64_t packed_bytes(const ms_step_settings *settings,
                             const ms_tensor *weight)
{
    const format *how = format_of(settings);
    uint64_t groups = groups_of(how, weight);
    uint64_t nested = how->nested > 0 ? 4 * over(groups, how->nested) : 0;
    return over(ms_trace_elements(weight) * how->bits, 8) +
           groups * how->scale_bytes + over(groups * how->zero_bits, 8) +
           nested + how->also_bytes;
}

/* ---- products ------------------------------------------------------------ */

/* Makes the weight in the dtype that its products read.  With double
 * quantisation the fp32 maxima are made before it. */
static uint32_t dequantize(ms_trace *trace, uint32_t weight, uint8_t dtype)
{
    if (trace->err)
        return MS_NONE;
    ms_tensor packed = *ms_trace_at(trace, weight);
    uint64_t n = ms_trace_elements(&packed);
    uint64_t bytes = trace->graph->storage_bytes[packed.storage];
    uint32_t maxima = MS_NONE;
    if (format_of(trace->settings)->nested > 0) {
        uint64_t groups = groups_of(format_of(trace->settings), &packed);
        ms_trace_begin(trace, "dequantize_blockwise");
        ms_trace_read_storage(trace, packed.storage, groups);
        maxima = ms_trace_make_storage(trace, "absmax", 4 * groups);
        ms_trace_end(trace, (double)groups, false);
    }
    ms_trace_begin(trace, "dequantize");
    ms_trace_read_storage(trace, packed.storage, bytes);
    uint32_t y =
        ms_trace_make(trace, "dequantized", dtype, packed.n_dims, packed.size);
    ms_trace_end(trace, (double)n, false);
    ms_trace_drop_storage(trace, maxima);
    return y;
}

/* Inputs: rows, weight. */
static void product_backward(ms_trace *trace, const ms_node *node,
                             const uint32_t *grads, uint32_t *out)
{
    if (!node->needs[0])
        return;
    uint8_t dtype = ms_trace_at(trace, grads[0])->dtype;
    uint32_t weight = dequantize(trace, node->input[1], dtype);
    ms_trace_begin(trace, "aten::mm");
    ms_trace_read(trace, grads[0]);
    ms_trace_read(trace, weight);
    out[0] = ms_trace_make_like(trace, "grad", node->input[0]);
    ms_opend_product(trace, node->flops, out[0]);
    ms_trace_drop(trace, weight);
}

static const ms_rule product_rule = {"MatMul4Bit", "aten::mm",
                                     product_backward};

static uint32_t multiply(ms_trace *trace, uint32_t rows, uint32_t weight,
                         uint32_t bias)
{
    uint32_t inputs[2] = {rows, weight};
    if (trace->err)
        return MS_NONE;
    ms_tensor x = *ms_trace_at(trace, rows);
    ms_tensor w = *ms_trace_at(trace, weight);
    int64_t dims[2] = {x.size[0], w.size[0]};
    double flops = 2 * (double)x.size[0] * (double)ms_trace_elements(&w);
    uint32_t made = dequantize(trace, weight, x.dtype);
    ms_trace_begin(trace, bias == MS_NONE ? "aten::mm" : "aten::addmm");
    ms_trace_read(trace, bias);
    ms_trace_read(trace, rows);
    ms_trace_read(trace, made);
    uint32_t y = ms_trace_make(trace, "out", x.dtype, 2, dims);
    ms_opend_product(trace, flops, y);
    ms_trace_drop(trace, made);
    uint32_t n = ms_trace_node(trace, &product_rule, inputs, 2, &y, 1);
    if (n != MS_NONE)
        trace->nodes[n].flops = flops;
    ms_trace_save(trace, n, weight);
    return y;
}

uint32_t ms_packed_linear(ms_trace *trace, uint32_t x, uint32_t weight,
                          uint32_t bias)
{
    if (trace->err)
        return MS_NONE;
    ms_tensor in = *ms_trace_at(trace, x);
    const ms_tensor *w = ms_trace_at(trace, weight);
    trace->graph->storage_bytes[w->storage] = packed_bytes(trace->settings, w);
    trace->n_formatted++;
    in.size[in.n_dims - 1] = w->size[0];
    uint32_t rows = ms_view_rows(trace, x);
    uint32_t flat = multiply(trace, rows, weight, bias);
    uint32_t y = ms_view_reshape(trace, flat, in.n_dims, in.size);
    ms_trace_drop(trace, rows);
    ms_trace_drop(trace, flat);
    return y;
}

/* ---- settings ------------------------------------------------------------ */

bool ms_packed_takes(const ms_trace *trace, const ms_layer *layer)
{
    return base_of(trace->settings->training) > 0 &&
           (trace->frozen || !trace->settings->train) &&
           !ms_trace_is_head(trace, layer);
}

static ms_err refuse(ms_fault *fault, const char *key, const char *hint,
                     const char *what)
{
    return ms_fail(fault, MS_EUSAGE, key, hint, "%s", what);
}

static ms_err check_base(const ms_training *training, ms_fault *fault)
{
    const ms_precision_row *row = ms_precisions_of(training);
    const char *key = training->lora_rank > 0 ? "lora.base" : "frozen.base";
    if (base_of(training) == 0)
        return MS_OK;
    if (training->lora_rank == 0 && training->mode == 0 &&
        training->frozen_blocks == 0)
        return refuse(fault, key,
                      "--set frozen.blocks=N, or training.mode=inference",
                      "frozen.base changes nothing where nothing is frozen");
    if (row->autocast != MS_FLOAT32)
        return ms_fail(fault, MS_EUSAGE, "training.precision",
                       "--precision bf16: the products read what the weights "
                       "are made into in the format of their inputs",
                       "training.precision=autocast contradicts %s", key);
    if (row->fp8)
        return refuse(fault, key, "--precision bf16",
                      "products in fp8 do not read packed weights");
    return MS_OK;
}

ms_err ms_packed_check(const ms_training *training, const ms_model *model,
                       ms_fault *fault)
{
    bool asks = training->frozen_blocks > 0 || training->frozen_base > 0;
    if (asks && training->lora_rank > 0)
        return refuse(fault, "lora.rank",
                      "leave frozen.blocks and frozen.base out; lora.base says "
                      "how weights are held",
                      "beside adapters all of the model is frozen");
    if (asks && model->ops != NULL)
        return ms_fail(fault, MS_EUSAGE, "frozen.blocks",
                       "export the model with what is frozen",
                       "%s is an op graph: its layers are what it ran",
                       model->name);
    if (training->frozen_blocks > model->n_blocks)
        return ms_fail(fault, MS_EUSAGE, "frozen.blocks",
                       "memsim inspect MODEL lists them",
                       "%s has %u blocks, not %lld", model->name,
                       model->n_blocks, (long long)training->frozen_blocks);
    return check_base(training, fault);
}

ms_err ms_packed_refuse(const ms_trace *trace)
{
    const ms_shape *shape = trace->settings->shape;
    const ms_offload *offload = &shape->offload;
    const ms_training *training = trace->settings->training;
    if (training->frozen_blocks == 0 && training->frozen_base == 0)
        return MS_OK;
    if (shape->shared >= MS_SHARED_OPTIMIZER || shape->flat_step.used ||
        offload->optimizer != MS_DEVICE_POOL ||
        offload->gradients != MS_DEVICE_POOL ||
        offload->parameters != MS_DEVICE_POOL)
        return refuse(trace->fault,
                      training->frozen_blocks > 0 ? "frozen.blocks"
                                                  : "frozen.base",
                      "take ddp, or leave one out",
                      "frozen weights are not known beside zero, fsdp and "
                      "offload");
    return MS_OK;
}
