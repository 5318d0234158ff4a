/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Layers that normalise. */
#include "graphs/aten/opcall.h"
#include "graphs/layers/layers.h"
#include "graphs/trace/trace.h"

/* ---- the last dimension -------------------------------------------------- */

#define AFFINE_FIELD                                                           \
    {                                                                          \
        .name = "affine", .type = MS_BOOL, .fallback.b = true,                 \
        .help = "learned scale and shift"                                      \
    }

const ms_field ms_normlayers_affine_fields[MS_NORMLAYERS_AFFINE] = {
    AFFINE_FIELD,
    {.name = "bias",
     .type = MS_BOOL,
     .fallback.b = true,
     .help = "the learned shift"},
};

ms_err ms_normlayers_layer(ms_trace *trace, const ms_layer *layer,
                           const uint32_t *in, uint32_t *out)
{
    uint32_t weight = MS_NONE, bias = MS_NONE;
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    if (layer->field[0].b) {
        int64_t width = ms_layers_last_dim(trace, in[0]);
        weight = ms_layers_vector(trace, "weight", width);
        if (layer->field[1].b)
            bias = ms_layers_vector(trace, "bias", width);
    }
    *out = trace->kernels.norm.maker->layer_norm(trace, in[0], weight, bias);
    return trace->err;
}

enum { RMS_UPCAST, RMS_CODE };
const ms_field ms_normlayers_rms_fields[MS_NORMLAYERS_RMS] = {
    {.name = "upcast",
     .type = MS_BOOL,
     .help = "by ops, in fp32 up to the scale, as Meta's LLaMA code"},
    MS_LAYERS_CODE_FIELD,
};

/* rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) */
static uint32_t rstd_of(ms_trace *trace, uint32_t x)
{
    uint32_t squares = ms_pointwise_pow(trace, x);
    uint32_t mean = ms_reduce_mean(trace, squares, 1);
    ms_trace_drop(trace, squares);
    uint32_t sum = ms_pointwise_add_scalar(trace, mean);
    ms_trace_drop(trace, mean);
    uint32_t rstd = ms_pointwise_rsqrt(trace, sum);
    ms_trace_drop(trace, sum);
    return rstd;
}

/* The normalised x in the dtype in which rstd was computed; t5's code computes
 * rstd alone in fp32 and multiplies x by it as it is. */
static uint32_t normed(ms_trace *trace, const ms_rms_code *code, uint32_t x)
{
    uint32_t wide = ms_cast_to(
        trace, x, code->upcasts ? MS_FLOAT32 : ms_trace_at(trace, x)->dtype);
    uint32_t rstd = rstd_of(trace, wide);
    if (code->scales_input) {
        ms_trace_drop(trace, wide);
        ms_trace_ref(trace, wide = x);
    }
    uint32_t y = ms_pointwise_mul(trace, wide, rstd);
    ms_trace_drop(trace, rstd);
    return ms_trace_rebind(trace, wide, y);
}

/* The tensor that multiplies the normalised x: the weight, or 1.0 +
 * weight.float() (gemma). */
static uint32_t scale_of(ms_trace *trace, const ms_rms_code *code,
                         uint32_t weight)
{
    if (!code->adds_one) {
        ms_trace_ref(trace, weight);
        return weight;
    }
    uint32_t wide = ms_cast_to(trace, weight, MS_FLOAT32);
    return ms_trace_rebind(trace, wide, ms_pointwise_add_scalar(trace, wide));
}

/* The ops of the Python code one by one.  The row of the code says where it
 * casts, and how long a variable keeps what it has made on the way alive. */
static uint32_t rms_apart(ms_trace *trace, const ms_rms_code *code, uint32_t x,
                          uint32_t weight)
{
    if (trace->err)
        return MS_NONE;
    uint8_t dtype = ms_trace_at(trace, code->to_weight ? weight : x)->dtype;
    uint32_t kept = normed(trace, code, x), in = kept;
    if (code->narrows == MS_NARROWS_BEFORE)
        in = ms_cast_to(trace, kept, dtype);
    else
        ms_trace_ref(trace, kept);
    if (!code->keeps_normed)
        ms_trace_drop(trace, kept);
    uint32_t scale = scale_of(trace, code, weight);
    uint32_t y = code->weight_first ? ms_pointwise_mul(trace, scale, in)
                                    : ms_pointwise_mul(trace, in, scale);
    ms_trace_drop(trace, scale);
    ms_trace_drop(trace, in);
    if (code->narrows == MS_NARROWS_AFTER)
        y = ms_trace_rebind(trace, y, ms_cast_to(trace, y, dtype));
    if (code->keeps_normed)
        ms_trace_drop(trace, kept);
    return y;
}

uint32_t ms_normlayers_rms_of(ms_trace *trace, uint32_t x, uint32_t weight,
                              int64_t code)
{
    if (trace->err)
        return MS_NONE;
    if (!ms_layers_is_apart(trace->kernels.norm, code))
        return trace->kernels.norm.maker->rms_norm(trace, x, weight);
    return rms_apart(trace, &ms_modelcodes[code].rms, x, weight);
}

/* self._norm(x.float()).type_as(x) * self.weight: meta-llama/llama model.py,
 * pytorch/torchtitan models/norms.py. */
static const ms_rms_code rms_meta = {.upcasts = true,
                                     .narrows = MS_NARROWS_BEFORE};

ms_err ms_normlayers_rms(ms_trace *trace, const ms_layer *layer,
                         const uint32_t *in, uint32_t *out)
{
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    uint32_t weight =
        ms_layers_vector(trace, "weight", ms_layers_last_dim(trace, in[0]));
    if (layer->field[RMS_UPCAST].b &&
        ms_kernels_apart(trace->kernels.norm, true))
        *out = rms_apart(trace, &rms_meta, in[0], weight);
    else
        *out = ms_normlayers_rms_of(trace, in[0], weight,
                                    layer->field[RMS_CODE].i);
    return trace->err;
}

/* ---- channels ------------------------------------------------------------ */

/* The number of channels of [batch, channels, ...], or 0 and a fault. */
static int64_t channels_of(ms_trace *trace, const ms_layer *layer, uint32_t x)
{
    char shape[MS_LAYERS_SHAPE];
    if (ms_layers_need_float(trace, layer, x) != MS_OK)
        return 0;
    const ms_tensor *tensor = ms_trace_at(trace, x);
    if (tensor->n_dims >= 2)
        return tensor->size[1];
    ms_trace_fail(trace, layer, "give the model an input of [channels, ...]",
                  "\"%s\" normalises channels, but \"%s\" gives %s",
                  layer->name, ms_layers_source(trace->settings, layer, 0),
                  ms_layers_shape(tensor, shape));
    return 0;
}

enum { BATCH_AFFINE, BATCH_RUNNING };
const ms_field ms_normlayers_batch_fields[MS_NORMLAYERS_BATCH] = {
    AFFINE_FIELD,
    {.name = "running",
     .type = MS_BOOL,
     .fallback.b = true,
     .help = "running mean and variance"},
};

/* Running mean, running variance and the count of batches, which the forward
 * increments in place. */
static void running_statistics(ms_trace *trace, int64_t channels,
                               uint32_t running[2])
{
    running[0] = ms_trace_buffer(trace, "running_mean", trace->weight_dtype, 1,
                                 &channels);
    running[1] = ms_trace_buffer(trace, "running_var", trace->weight_dtype, 1,
                                 &channels);
    uint32_t batches = ms_trace_buffer(trace, "num_batches_tracked", MS_INT64,
                                       0, (const int64_t[]){0});
    if (!trace->settings->train)
        return;
    ms_trace_begin(trace, "aten::add_");
    ms_trace_read(trace, batches);
    ms_trace_end(trace, 0, false);
}

ms_err ms_normlayers_batch(ms_trace *trace, const ms_layer *layer,
                           const uint32_t *in, uint32_t *out)
{
    bool tracks = layer->field[BATCH_RUNNING].b;
    uint32_t weight = MS_NONE, bias = MS_NONE, running[2];
    int64_t channels = channels_of(trace, layer, in[0]);
    MS_TRY(trace->err);
    if (layer->field[BATCH_AFFINE].b) {
        weight = ms_layers_vector(trace, "weight", channels);
        bias = ms_layers_vector(trace, "bias", channels);
    }
    if (tracks)
        running_statistics(trace, channels, running);
    *out = ms_norm_batch(trace, in[0], weight, bias, tracks ? running : NULL);
    return trace->err;
}

enum { GROUP_GROUPS, GROUP_AFFINE };
const ms_field ms_normlayers_group_fields[MS_NORMLAYERS_GROUP] = {
    {.name = "groups",
     .type = MS_INT,
     .required = true,
     .low = 1,
     .high = INT64_C(1) << 24,
     .help = "groups of channels; must divide them"},
    AFFINE_FIELD,
};

ms_err ms_normlayers_group(ms_trace *trace, const ms_layer *layer,
                           const uint32_t *in, uint32_t *out)
{
    int64_t groups = layer->field[GROUP_GROUPS].i;
    uint32_t weight = MS_NONE, bias = MS_NONE;
    int64_t channels = channels_of(trace, layer, in[0]);
    MS_TRY(trace->err);
    if (channels % groups != 0)
        return ms_trace_fail(
            trace, layer, "choose groups that divide the channels",
            "\"%s\": the %lld channels of \"%s\" do not divide into %lld "
            "groups",
            layer->name, (long long)channels,
            ms_layers_source(trace->settings, layer, 0), (long long)groups);
    if (layer->field[GROUP_AFFINE].b) {
        weight = ms_layers_vector(trace, "weight", channels);
        bias = ms_layers_vector(trace, "bias", channels);
    }
    *out = ms_norm_group(trace, in[0], weight, bias, groups);
    return trace->err;
}

/* ---- one sample's channels ----------------------------------------------- */

const ms_field ms_normlayers_instance_fields[MS_NORMLAYERS_INSTANCE] = {
    {.name = "affine", .type = MS_BOOL, .help = "learned scale and shift"},
};

/* x.repeat(batch) of a parameter, or MS_NONE where the layer has none. */
static uint32_t repeated(ms_trace *trace, const ms_layer *layer,
                         const char *role, int64_t channels, int64_t batch)
{
    if (!layer->field[0].b)
        return MS_NONE;
    uint32_t parameter = ms_layers_vector(trace, role, channels);
    ms_opcall call = {.op = "aten::repeat"};
    ms_opcall_like(trace, &call.made[0], parameter);
    call.made[0].size[0] = channels * batch;
    return ms_opcall_run(trace, &call, &parameter, 1);
}

/* An instance norm is computed as a batch norm of [1, batch channels, ...]
 * (ATen/native/Normalization.cpp, instance_norm). */
ms_err ms_normlayers_instance(ms_trace *trace, const ms_layer *layer,
                              const uint32_t *in, uint32_t *out)
{
    int64_t channels = channels_of(trace, layer, in[0]);
    MS_TRY(trace->err);
    ms_tensor x = *ms_trace_at(trace, in[0]);
    int64_t dims[MS_MAX_DIMS];
    for (uint32_t d = 0; d < x.n_dims; d++)
        dims[d] = x.size[d];
    dims[0] = 1;
    dims[1] = x.size[0] * channels;
    uint32_t weight = repeated(trace, layer, "weight", channels, x.size[0]);
    uint32_t bias = repeated(trace, layer, "bias", channels, x.size[0]);
    uint32_t flat = ms_view_reshape(trace, in[0], x.n_dims, dims);
    uint32_t y = ms_norm_batch(trace, flat, weight, bias, NULL);
    ms_trace_drop(trace, flat);
    ms_trace_drop(trace, weight);
    ms_trace_drop(trace, bias);
    *out = ms_view_reshape(trace, y, x.n_dims, x.size);
    ms_trace_drop(trace, y);
    return trace->err;
}
