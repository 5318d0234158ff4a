/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/layers/attention/sdpa.h"
#include "graphs/layers/attention/sharedtables.h"
#include "graphs/layers/layers.h"
#include "graphs/trace/trace.h"
#include "sim/graph.h"

#define AMPERE 80u /* ms_device.compute_capability */
#define FLASH_MOST_CHANNELS 256
#define EFFICIENT_ROW_BYTES 16

/* ---- which kernel -------------------------------------------------------- */

/* The dtype that the kernel reads: autocast's where it is on. */
static uint8_t dtype_of(const ms_trace *trace, uint32_t q)
{
    uint8_t dtype = ms_trace_at(trace, q)->dtype;
    return trace->autocast != MS_FLOAT32 ? trace->autocast : dtype;
}

static bool is_older(const ms_step_settings *settings)
{
    uint32_t has = settings->device->compute_capability;
    return has > 0 && has < AMPERE;
}

/* scaled_dot_product_attention has no argument for a window: the caller passes
 * it as a mask. */
static bool has_mask(const ms_trace *trace, const uint32_t *qkv,
                     ms_attended attended)
{
    return attended.window > 0 &&
           attended.window < ms_trace_at(trace, qkv[1])->size[2];
}

static bool flash_can(const ms_trace *trace, const uint32_t *qkv,
                      ms_attended attended)
{
    int64_t channels = ms_trace_at(trace, qkv[0])->size[3];
    uint8_t dtype = dtype_of(trace, qkv[0]);
    return !is_older(trace->settings) &&
           (dtype == MS_FLOAT16 || dtype == MS_BFLOAT16) &&
           !has_mask(trace, qkv, attended) && channels <= FLASH_MOST_CHANNELS &&
           channels == ms_trace_at(trace, qkv[1])->size[3] &&
           channels == ms_trace_at(trace, qkv[2])->size[3];
}

static bool efficient_can(const ms_trace *trace, const uint32_t *qkv)
{
    uint8_t dtype = dtype_of(trace, qkv[0]);
    if (dtype == MS_FLOAT64 ||
        (dtype == MS_BFLOAT16 && is_older(trace->settings)))
        return false;
    for (uint32_t i = 0; i < 3; i++) {
        int64_t channels = ms_trace_at(trace, qkv[i])->size[3];
        if (channels * ms_dtypes_bytes[dtype] % EFFICIENT_ROW_BYTES != 0)
            return false;
    }
    return true;
}

/* ---- the math path ------------------------------------------------------- */

/* ATen/native/transformers/attention.cpp, _scaled_dot_product_attention_math: q
 * and k are each scaled by the root of the scale, and a mask is added. */
static uint32_t math(ms_trace *trace, const uint32_t qkv[3],
                     ms_attended attended)
{
    int64_t sequence = ms_trace_at(trace, qkv[0])->size[2];
    uint32_t q = ms_pointwise_mul_scalar(trace, qkv[0]);
    uint32_t turned = ms_view_transpose(trace, qkv[1], 2, 3);
    uint32_t k =
        ms_trace_rebind(trace, turned, ms_pointwise_mul_scalar(trace, turned));
    trace->op_flags |= MS_OP_CORE;
    uint32_t a = ms_matmul_batched(trace, q, k);
    ms_trace_drop(trace, k); /* a temporary; q is a variable */
    if (attended.causal || has_mask(trace, qkv, attended)) {
        uint32_t mask = ms_sharedtables_rows(trace, "causal_mask", sequence, 0);
        a = ms_trace_rebind(trace, a, ms_pointwise_add(trace, a, mask));
        ms_trace_drop(trace, mask);
    }
    a = ms_trace_rebind(trace, a, ms_norm_softmax(trace, a));
    a = ms_trace_rebind(trace, a,
                        ms_pointwise_dropout(trace, a, attended.dropout));
    trace->op_flags &= (uint8_t)~MS_OP_CORE;
    uint32_t y = ms_matmul_batched(trace, a, qkv[2]);
    ms_trace_drop(trace, a);
    ms_trace_drop(trace, q);
    return y;
}

/* From PyTorch 2.5 on the math path computes 16-bit inputs in fp32. */
static uint32_t math_of(ms_trace *trace, const uint32_t *qkv,
                        ms_attended attended)
{
    uint8_t dtype = dtype_of(trace, qkv[0]);
    uint32_t wide[3];
    if (dtype == MS_FLOAT32 || trace->settings->framework < MS_TORCH_2)
        return math(trace, qkv, attended);
    for (uint32_t i = 0; i < 3; i++)
        wide[i] = ms_cast_to(trace, qkv[i], MS_FLOAT32);
    uint32_t y = trace->err ? MS_NONE : math(trace, wide, attended);
    for (uint32_t i = 0; i < 3; i++)
        ms_trace_drop(trace, wide[i]);
    return ms_trace_rebind(trace, y, ms_cast_to(trace, y, dtype));
}

/* ---- the kernels --------------------------------------------------------- */

const ms_attention_kernel ms_sdpa_eager = {
    .name = "eager", .path = MS_PATH_OPS, .apart = true, .run = math};

static uint32_t flash(ms_trace *trace, const uint32_t qkv[3],
                      ms_attended attended)
{
    return ms_attention_flash(trace, qkv[0], qkv[1], qkv[2], attended);
}

const ms_attention_kernel ms_sdpa_flash = {
    .name = "flash",
    .path = MS_PATH_FLASH,
    .run = flash,
    .shares_heads = true,
    .takes_slopes = true,
    .pads_values = true,
};
const ms_attention_kernel ms_sdpa_flash3 = {
    .name = "flash3",
    .path = MS_PATH_FLASH,
    .run = flash,
    .shares_heads = true,
    .takes_slopes = true,
    .pads_values = true,
};

static uint32_t efficient(ms_trace *trace, const uint32_t qkv[3],
                          ms_attended attended)
{
    return ms_attention_efficient(trace, qkv[0], qkv[1], qkv[2], attended);
}

const ms_attention_kernel ms_sdpa_efficient = {
    .name = "efficient",
    .path = MS_PATH_EFFICIENT,
    .run = efficient,
    .masks_windows = true,
};

static const ms_attention_kernel *choose_kernel(const ms_trace *trace,
                                                const uint32_t qkv[3],
                                                ms_attended attended)
{
    if (trace->settings->framework < ms_sdpa_first.since)
        return &ms_sdpa_eager;
    if (trace->settings->cpu)
        return attended.dropout > 0 ? &ms_sdpa_eager : &ms_sdpa_flash;
    if (flash_can(trace, qkv, attended))
        return &ms_sdpa_flash;
    return efficient_can(trace, qkv) ? &ms_sdpa_efficient : &ms_sdpa_eager;
}

static uint32_t run_first(ms_trace *trace, const uint32_t qkv[3],
                          ms_attended attended)
{
    if (has_mask(trace, qkv, attended)) {
        int64_t sequence = ms_trace_at(trace, qkv[1])->size[2];
        ms_trace_drop(trace,
                      ms_sharedtables_rows(trace, "causal_mask", sequence, 0));
    }
    if (trace->err)
        return MS_NONE;
    const ms_attention_kernel *kernel = choose_kernel(trace, qkv, attended);
    return kernel->apart ? math_of(trace, qkv, attended)
                         : kernel->run(trace, qkv, attended);
}

const ms_attention_kernel ms_sdpa_first = {
    .name = "sdpa",
    .path = MS_PATH_SDPA,
    .choose = choose_kernel,
    .run = run_first,
    .since = MS_TORCH_2_0,
    .shares_since = MS_TORCH_2,
};

/* ---- the whole ----------------------------------------------------------- */

const ms_attention_kernel *ms_sdpa_choice(const ms_trace *trace,
                                          const ms_attention_kernel *kernel,
                                          const uint32_t qkv[3],
                                          ms_attended attended)
{
    return kernel->choose && !trace->err ? kernel->choose(trace, qkv, attended)
                                         : kernel;
}

uint32_t ms_sdpa_run(ms_trace *trace, const ms_attention_kernel *kernel,
                     const uint32_t qkv[3], ms_attended attended)
{
    return trace->err ? MS_NONE : kernel->run(trace, qkv, attended);
}
