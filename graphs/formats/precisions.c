/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of precisions.  Sources: graphs/states.md 1;
 * NVIDIA/TransformerEngine, transformer_engine/pytorch/module/linear.py and
 * optimizers/fused_adam.py; pytorch/ao,
 * torchao/prototype/mx_formats/mx_linear.py; Azure/MS-AMP,
 * docs/user-tutorial/optimization-level.md, msamp/__init__.py. */
#include "graphs/formats/precisions.h"
#include "graphs/trace/trace.h"

#include <stdio.h>
#include <string.h>

#define SETTING MS_NO_DTYPE
#define NONE MS_NO_DTYPE
#define BOTH(w, g, m) .other = {w, g, m}, .linear = {w, g, m}

const ms_precision_row ms_precisions_rows[] = {
    {.name = "fp32",
     .help = "everything in 32 bits",
     BOTH(MS_FLOAT32, SETTING, NONE)},
    {.name = "tf32",
     .help = "the same bytes; products at the rate of tf32",
     BOTH(MS_FLOAT32, SETTING, NONE),
     .tf32 = true},
    {.name = "fp16-mixed",
     .help = "16-bit model, fp32 master copy; training.gradients: fp32 "
             "(4) or main (2 + 4, Megatron's fp16)",
     BOTH(MS_FLOAT16, SETTING, MS_FLOAT32)},
    {.name = "bf16-mixed",
     .help = "the same in bf16; training.gradients=fp32: Megatron's "
             "bf16",
     BOTH(MS_BFLOAT16, SETTING, MS_FLOAT32)},
    {.name = "bf16",
     .help = "everything in bf16; adamw-kahan adds a compensation",
     BOTH(MS_BFLOAT16, SETTING, NONE)},
    {.name = "autocast-fp16",
     .help = "torch.autocast: cast copies of weights last from forward "
             "to backward",
     BOTH(MS_FLOAT32, SETTING, NONE),
     .autocast = MS_FLOAT16},
    {.name = "autocast-bf16",
     .help = "the same in bf16",
     BOTH(MS_FLOAT32, SETTING, NONE),
     .autocast = MS_BFLOAT16},
    {.name = "fp16",
     .help = "everything in fp16",
     BOTH(MS_FLOAT16, SETTING, NONE)},
    /* Weight and remainder are the two halves of an fp32 weight. */
    {.name = "bf16-remainders",
     .help = "Transformer Engine's FusedAdam with "
             "store_param_remainders: 16 bits that complete a bf16 "
             "weight to fp32",
     BOTH(MS_BFLOAT16, SETTING, MS_INT16),
     .optimizers = MS_OPTIMIZERS_TE,
     .maker = "Transformer Engine's FusedAdam"},
    {.name = "fp8",
     .help = "Transformer Engine: products of linear layers in fp8, of "
             "copies of bf16 weights (fp8.weights)",
     BOTH(MS_BFLOAT16, SETTING, MS_FLOAT32),
     .fp8 = true},
    {.name = "fp8-primary",
     .help = "the same under quantized_model_init: no weights but "
             "those; kept, a transposed copy before Blackwell",
     .other = {MS_BFLOAT16, SETTING, MS_FLOAT32},
     .linear = {MS_FLOAT8, SETTING, MS_FLOAT32},
     .fp8 = true,
     .quantized = true},
    {.name = "mxfp8",
     .help = "fp8 with a scale for 32 elements (OCP microscaling), as "
             "Transformer Engine's MXFP8BlockScaling has it: rows and columns "
             "are two copies; Blackwell",
     BOTH(MS_BFLOAT16, SETTING, MS_FLOAT32),
     .fp8 = true,
     .mx = true},
    {.name = "mxfp8-torchao",
     .help = "the same as torchao's MXLinear has it: inputs stay in 16 bits, "
             "and each product quantizes what it reads",
     BOTH(MS_BFLOAT16, SETTING, MS_FLOAT32),
     .fp8 = true,
     .mx = true,
     .wide = true},
    /* The model is fp32 but for its linear layers, and runs under autocast. */
    {.name = "msamp-o1",
     .help = "MS-AMP: fp8 products and gradients of linear layers, the "
             "rest fp32 under autocast-fp16",
     .other = {MS_FLOAT32, MS_FLOAT32, NONE},
     .linear = {MS_FLOAT16, MS_FLOAT8, NONE},
     .autocast = MS_FLOAT16,
     .fp8 = true,
     .late = true,
     .optimizers = MS_OPTIMIZERS_MSAMP_O1,
     .maker = "MS-AMP"},
    {.name = "msamp-o2",
     .help = "the same with moments in fp8 and fp16",
     .other = {MS_FLOAT32, MS_FLOAT32, NONE},
     .linear = {MS_FLOAT16, MS_FLOAT8, NONE},
     .autocast = MS_FLOAT16,
     .fp8 = true,
     .late = true,
     .optimizers = MS_OPTIMIZERS_MSAMP_O2,
     .maker = "MS-AMP"},
    {.name = "msamp-o3",
     .help = "the same with fp8 weights and an fp16 master copy, as "
             "MS-AMP has it under ZeRO",
     .other = {MS_FLOAT32, MS_FLOAT32, NONE},
     .linear = {MS_FLOAT8, MS_FLOAT8, MS_FLOAT16},
     .autocast = MS_FLOAT16,
     .fp8 = true,
     .late = true,
     .quantized = true,
     .optimizers = MS_OPTIMIZERS_MSAMP_O2,
     .maker = "MS-AMP"},
};
const uint32_t ms_precisions_n =
    sizeof ms_precisions_rows / sizeof *ms_precisions_rows;

const ms_precision_row *ms_precisions_of(const ms_training *training)
{
    return &ms_precisions_rows[training->precision];
}

bool ms_precisions_is_mixed(const ms_training *training)
{
    return ms_precisions_of(training)->other.master == MS_FLOAT32;
}

double ms_precisions_peak_flops(const ms_training *training,
                                const ms_device *device)
{
    const ms_precision_row *row = ms_precisions_of(training);
    if (row->fp8)
        return device->fp8_flops;
    if (row->other.weight != MS_FLOAT32 || row->autocast != MS_FLOAT32)
        return device->half_flops;
    return row->tf32 ? device->tf32_flops : device->fp32_flops;
}

/* ---- DeepSpeed's flat step ----------------------------------------------- */

bool ms_precisions_has_sum(const ms_step_settings *settings)
{
    const ms_training *training = settings->training;
    return settings->shape->flat_step.has_sum &&
           training->gradients == MS_GRADIENTS_FP32 &&
           training->precision != MS_FP16_MIXED &&
           ms_precisions_is_mixed(training);
}

bool ms_precisions_is_flat_fp32(const ms_step_settings *settings)
{
    int64_t precision = settings->training->precision;
    return settings->shape->flat_step.used &&
           (precision == MS_FP32 || precision == MS_TF32);
}

/* ---- of a parameter ------------------------------------------------------ */

static const ms_format *format_of(const ms_step_settings *settings,
                                  const ms_parameter *parameter)
{
    const ms_precision_row *row = ms_precisions_of(settings->training);
    return parameter->linear ? &row->linear : &row->other;
}

uint8_t ms_precisions_gradient(const ms_trace *trace,
                               const ms_parameter *parameter)
{
    uint8_t dtype = format_of(trace->settings, parameter)->gradient;
    return dtype != SETTING ? dtype : trace->grad_dtype;
}

/* Adapters in fp32 beside 16-bit weights need no master copy. */
uint8_t ms_precisions_master(const ms_trace *trace,
                             const ms_parameter *parameter)
{
    if (ms_precisions_is_flat_fp32(trace->settings))
        return MS_FLOAT32;
    return trace->trained_dtype == trace->weight_dtype
               ? format_of(trace->settings, parameter)->master
               : NONE;
}

const char *ms_precisions_help(uint32_t row)
{
    return ms_precisions_rows[row].help;
}

/* ---- beside other settings ----------------------------------------------- */

static bool is_adam(const ms_training *training)
{
    return training->optimizer == MS_ADAM || training->optimizer == MS_ADAMW;
}

static ms_err check_gradients(const ms_training *training, ms_fault *fault)
{
    const ms_precision_row *row = ms_precisions_of(training);
    static const char key[] = "training.gradients";
    if (training->gradients == MS_GRADIENTS_AUTO)
        return MS_OK;
    if (row->linear.gradient != SETTING)
        return ms_fail(fault, MS_EUSAGE, key, "leave it out",
                       "%s says itself what gradients are", row->name);
    if (training->gradients != MS_GRADIENTS_MAIN)
        return MS_OK;
    if (!ms_precisions_is_mixed(training))
        return ms_fail(fault, MS_EUSAGE, key,
                       "--precision fp16-mixed, or leave it out",
                       "%s has no fp32 master copy that main gradients would "
                       "update",
                       row->name);
    return MS_OK;
}

ms_err ms_precisions_check(const ms_training *training, ms_fault *fault)
{
    const ms_precision_row *row = ms_precisions_of(training);
    MS_TRY(check_gradients(training, fault));
    if (row->optimizers != MS_OPTIMIZERS_ANY && !is_adam(training) &&
        training->optimizer != MS_NO_OPTIMIZER)
        return ms_fail(fault, MS_EUSAGE, "training.precision",
                       "--optimizer adamw, or adam",
                       "%s has no update but adam and adamw", row->maker);
    if ((row->fp8 || row->linear.gradient != SETTING) &&
        training->lora_rank > 0)
        return ms_fail(fault, MS_EUSAGE, "training.precision",
                       "--precision bf16, or leave lora.rank out",
                       "no adapters are known beside products in fp8");
    return MS_OK;
}

static ms_err refuse(const ms_trace *trace, const char *why, const char *hint)
{
    return ms_fail(trace->fault, MS_EUSAGE, "training.precision", hint, "%s %s",
                   ms_precisions_of(trace->settings->training)->name, why);
}

ms_err ms_precisions_refuse(const ms_trace *trace)
{
    const ms_precision_row *row = ms_precisions_of(trace->settings->training);
    const ms_shape *shape = trace->settings->shape;
    const ms_offload *offload = &shape->offload;
    bool plain = !row->quantized && row->optimizers == MS_OPTIMIZERS_ANY;
    bool far = offload->optimizer != MS_DEVICE_POOL ||
               offload->gradients != MS_DEVICE_POOL ||
               offload->parameters != MS_DEVICE_POOL;
    if (!plain && far)
        return refuse(trace, "is not known beside offload",
                      "take fp8 or bf16-mixed, or leave offload out");
    if ((row->quantized || row->linear.gradient != SETTING) &&
        shape->shared == MS_SHARED_PARAMETERS)
        return refuse(trace,
                      "has weights of two formats, and ranks that share them "
                      "gather one",
                      "take fp8, or zero:1 or zero:2");
    if (row->linear.gradient != SETTING && shape->fp32_gradients)
        return refuse(trace, "has its own gradients, Megatron's are fp32",
                      "take fp8, or leave impl=megatron out");
    if (trace->settings->training->gradients == MS_GRADIENTS_WEIGHTS &&
        (shape->part_is_master ||
         (shape->fp32_gradients && shape->shared != MS_SHARED_OPTIMIZER)))
        return ms_fail(trace->fault, MS_EUSAGE, "training.gradients",
                       "leave it out here",
                       "gradients of fsdp have the format of its parts");
    if (trace->settings->training->gradients == MS_GRADIENTS_MAIN &&
        (shape->fp32_gradients || shape->copies_parts ||
         shape->flat_step.used || far))
        return ms_fail(trace->fault, MS_EUSAGE, "training.gradients",
                       "leave it out here",
                       "main gradients are those of Megatron's fp16 optimizer "
                       "on the device");
    return MS_OK;
}
