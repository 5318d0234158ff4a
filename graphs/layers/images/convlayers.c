/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Layers over [channels, ...] of images, sequences and volumes. */
#include "graphs/aten/opcall.h"
#include "graphs/layers/layers.h"
#include "graphs/layertypes.h"
#include "graphs/trace/trace.h"

#include <string.h>

#define MAX_KERNEL (INT64_C(1) << 16)

/* Sizes of an output under way: [batch, channels, ...]. */
typedef struct shape {
    uint32_t n_dims;
    int64_t size[MS_MAX_DIMS];
} shape;

/* Types end in their number of dimensions: "conv1d". */
static uint32_t spatial_of(const ms_layer *layer)
{
    const char *type = layer->kind->type;
    return (uint32_t)(type[strlen(type) - 2] - '0');
}

/* Fails unless x is [channels, ...] with so many dimensions after the
 * channels. */
static ms_err open_shape(ms_trace *trace, const ms_layer *layer, uint32_t x,
                         uint32_t spatial, shape *in)
{
    static const char *const wanted[] = {"[channels, length]",
                                         "[channels, height, width]",
                                         "[channels, depth, height, width]"};
    char text[MS_LAYERS_SHAPE];
    MS_TRY(ms_layers_need_float(trace, layer, x));
    const ms_tensor *tensor = ms_trace_at(trace, x);
    if (tensor->n_dims != spatial + 2)
        return ms_trace_fail(trace, layer, "reshape it, or mend the input",
                             "\"%s\" needs %s, but \"%s\" gives %s",
                             layer->name, wanted[spatial - 1],
                             ms_layers_source(trace->settings, layer, 0),
                             ms_layers_shape(tensor, text));
    in->n_dims = tensor->n_dims;
    for (uint32_t d = 0; d < tensor->n_dims; d++)
        in->size[d] = tensor->size[d];
    return MS_OK;
}

static ms_err fail_small(ms_trace *trace, const ms_layer *layer, uint32_t x,
                         int64_t kernel)
{
    char text[MS_LAYERS_SHAPE];
    return ms_trace_fail(
        trace, layer, "pad it, or take a smaller kernel",
        "\"%s\": the output %s of \"%s\" is smaller than its "
        "kernel of %lld",
        layer->name, ms_layers_shape(ms_trace_at(trace, x), text),
        ms_layers_source(trace->settings, layer, 0), (long long)kernel);
}

/* How a window moves over one dimension. */
typedef struct window {
    int64_t kernel, stride, padding, dilation;
} window;

/* floor((size + 2 padding - dilation (kernel - 1) - 1) / stride) + 1, or 0 */
static int64_t windows_of(int64_t size, const window *w)
{
    int64_t span = w->dilation * (w->kernel - 1) + 1;
    int64_t padded = size + 2 * w->padding;
    return padded < span ? 0 : (padded - span) / w->stride + 1;
}

/* As windows_of, rounded up (ceil_mode), but without a window that would begin
 * after the end of the input and its left padding
 * (ATen/native/Pool.h, pooling_output_shape_pad_lr). */
static int64_t windows_up(int64_t size, const window *w)
{
    int64_t floored = windows_of(size, w);
    int64_t rest = size + 2 * w->padding - w->kernel;
    return floored > 0 && rest % w->stride != 0 &&
                   floored * w->stride < size + w->padding
               ? floored + 1
               : floored;
}

/* (size - 1) stride - 2 padding + dilation (kernel - 1) + 1, or 0; sizes are
 * below 2^50 and strides below 2^17, so only the product can overflow. */
static int64_t size_before(int64_t size, const window *w)
{
    int64_t spread;
    if (__builtin_mul_overflow(size - 1, w->stride, &spread) ||
        spread > INT64_MAX / 4)
        return INT64_MAX / 4;
    int64_t n = spread - 2 * w->padding + w->dilation * (w->kernel - 1) + 1;
    return n < 0 ? 0 : n;
}

/* ---- convolutions -------------------------------------------------------- */

enum {
    CONV_OUT,
    CONV_KERNEL,
    CONV_STRIDE,
    CONV_PADDING,
    CONV_DILATION,
    CONV_GROUPS,
    CONV_BIAS,
    CONV_KERNEL_WIDTH,
    CONV_PADDING_WIDTH
};
const ms_field ms_convlayers_conv_fields[MS_CONVLAYERS_CONV] = {
    {.name = "out",
     .type = MS_INT,
     .required = true,
     .low = 1,
     .high = INT64_C(1) << 24,
     .help = "output channels"},
    {.name = "kernel",
     .type = MS_INT,
     .required = true,
     .low = 1,
     .high = MAX_KERNEL,
     .help = "size of the kernel in each dimension"},
    {.name = "stride",
     .type = MS_INT,
     .fallback.i = 1,
     .low = 1,
     .high = MAX_KERNEL,
     .help = "step of the kernel"},
    {.name = "padding",
     .type = MS_INT,
     .low = 0,
     .high = MAX_KERNEL,
     .help = "zeros at each side"},
    {.name = "dilation",
     .type = MS_INT,
     .fallback.i = 1,
     .low = 1,
     .high = MAX_KERNEL,
     .help = "distance of the kernel's elements"},
    {.name = "groups",
     .type = MS_INT,
     .fallback.i = 1,
     .low = 1,
     .high = INT64_C(1) << 24,
     .help = "groups of channels that do not mix"},
    MS_LAYERS_BIAS_FIELD,
    {.name = "kernel_width",
     .type = MS_INT,
     .low = 0,
     .high = MAX_KERNEL,
     .help = "its size in the last dimension; 0: as kernel"},
    {.name = "padding_width",
     .type = MS_INT,
     .fallback.i = -1,
     .low = -1,
     .high = MAX_KERNEL,
     .help = "zeros in the last dimension; -1: as padding"},
};

/* How the kernel moves over dimension d of n. */
static window conv_window(const ms_layer *layer, uint32_t d, uint32_t n)
{
    const ms_value *field = layer->field;
    window w = {field[CONV_KERNEL].i, field[CONV_STRIDE].i,
                field[CONV_PADDING].i, field[CONV_DILATION].i};
    if (d + 1 == n && field[CONV_KERNEL_WIDTH].i > 0)
        w.kernel = field[CONV_KERNEL_WIDTH].i;
    if (d + 1 == n && field[CONV_PADDING_WIDTH].i >= 0)
        w.padding = field[CONV_PADDING_WIDTH].i;
    return w;
}

static ms_err check_groups(ms_trace *trace, const ms_layer *layer,
                           int64_t channels)
{
    int64_t groups = layer->field[CONV_GROUPS].i;
    int64_t out = layer->field[CONV_OUT].i;
    if (channels % groups == 0 && out % groups == 0)
        return MS_OK;
    return ms_trace_fail(
        trace, layer, "choose groups that divide both",
        "\"%s\": the %lld channels of \"%s\" and its own %lld do not divide "
        "into %lld groups",
        layer->name, (long long)channels,
        ms_layers_source(trace->settings, layer, 0), (long long)out,
        (long long)groups);
}

/* [out, in / groups, kernel...]; transposed: [in, out / groups, kernel...]. */
static uint32_t conv_weight(ms_trace *trace, const ms_layer *layer,
                            const shape *in, bool transposed)
{
    int64_t groups = layer->field[CONV_GROUPS].i;
    int64_t out = layer->field[CONV_OUT].i;
    int64_t dims[MS_MAX_DIMS];
    dims[0] = transposed ? in->size[1] : out;
    dims[1] = (transposed ? out : in->size[1]) / groups;
    for (uint32_t d = 2; d < in->n_dims; d++)
        dims[d] = conv_window(layer, d, in->n_dims).kernel;
    return ms_trace_parameter(trace, "weight", in->n_dims, dims);
}

/* 2 FLOPs for each weight at each position; `moved` is the side over whose
 * positions the kernel moves: the output, transposed the input. */
static double conv_flops(ms_trace *trace, const shape *moved, uint32_t weight)
{
    double positions = (double)moved->size[0];
    for (uint32_t d = 2; d < moved->n_dims; d++)
        positions *= (double)moved->size[d];
    return trace->err
               ? 0
               : 2 * positions *
                     (double)ms_trace_elements(ms_trace_at(trace, weight));
}

static ms_err convolve(ms_trace *trace, const ms_layer *layer, bool transposed,
                       uint32_t x, uint32_t *out)
{
    const ms_value *field = layer->field;
    uint32_t bias = MS_NONE;
    shape in;
    MS_TRY(open_shape(trace, layer, x, spatial_of(layer), &in));
    MS_TRY(check_groups(trace, layer, in.size[1]));
    shape to = in;
    to.size[1] = field[CONV_OUT].i;
    for (uint32_t d = 2; d < in.n_dims; d++) {
        window w = conv_window(layer, d, in.n_dims);
        to.size[d] = transposed ? size_before(in.size[d], &w)
                                : windows_of(in.size[d], &w);
        if (to.size[d] == 0)
            return fail_small(trace, layer, x, w.kernel);
    }
    uint32_t weight = conv_weight(trace, layer, &in, transposed);
    if (field[CONV_BIAS].b)
        bias = ms_layers_vector(trace, "bias", to.size[1]);
    ms_conv conv = {to.size, transposed,
                    conv_flops(trace, transposed ? &in : &to, weight)};
    *out = ms_conv_convolution(trace, x, weight, bias, &conv);
    return trace->err;
}

ms_err ms_convlayers_conv(ms_trace *trace, const ms_layer *layer,
                          const uint32_t *in, uint32_t *out)
{
    return convolve(trace, layer, false, in[0], out);
}

ms_err ms_convlayers_transposed(ms_trace *trace, const ms_layer *layer,
                                const uint32_t *in, uint32_t *out)
{
    return convolve(trace, layer, true, in[0], out);
}

/* ---- pooling ------------------------------------------------------------- */

enum { POOL_KERNEL, POOL_STRIDE, POOL_PADDING, POOL_CEIL };
const ms_field ms_convlayers_pool_fields[MS_CONVLAYERS_POOL] = {
    {.name = "kernel",
     .type = MS_INT,
     .required = true,
     .low = 1,
     .high = MAX_KERNEL,
     .help = "size of the window in each dimension"},
    {.name = "stride",
     .type = MS_INT,
     .low = 0,
     .high = MAX_KERNEL,
     .help = "step of the window; 0: its size"},
    {.name = "padding",
     .type = MS_INT,
     .low = 0,
     .high = MAX_KERNEL,
     .help = "border at each side, at most half the window"},
    {.name = "ceil",
     .type = MS_BOOL,
     .help = "windows that begin within but end outside count too"},
};

static ms_err pooled(ms_trace *trace, const ms_layer *layer, uint32_t x,
                     shape *to)
{
    int64_t stride = layer->field[POOL_STRIDE].i;
    window w = {layer->field[POOL_KERNEL].i, stride,
                layer->field[POOL_PADDING].i, 1};
    if (stride == 0)
        w.stride = w.kernel;
    MS_TRY(open_shape(trace, layer, x, spatial_of(layer), to));
    if (2 * w.padding > w.kernel)
        return ms_trace_fail(trace, layer, "take a smaller padding",
                             "\"%s\": a padding of %lld is more than half the "
                             "window of %lld",
                             layer->name, (long long)w.padding,
                             (long long)w.kernel);
    for (uint32_t d = 2; d < to->n_dims; d++) {
        to->size[d] = layer->field[POOL_CEIL].b ? windows_up(to->size[d], &w)
                                                : windows_of(to->size[d], &w);
        if (to->size[d] == 0)
            return fail_small(trace, layer, x, w.kernel);
    }
    return MS_OK;
}

/* Runs the op of the layer's type with an output of these sizes; a second
 * output, where the op has one, holds indices. */
static ms_err resize(ms_trace *trace, const ms_layer *layer, uint32_t x,
                     const char *op, const shape *to, uint32_t *out)
{
    ms_opcall call = {.op = op, .flops = layer->kind->flops};
    for (uint32_t k = 0; k < MS_OPCALL_OUTPUTS; k++) {
        call.made[k].dtype = k ? MS_INT64 : ms_trace_at(trace, x)->dtype;
        call.made[k].n_dims = (uint8_t)to->n_dims;
        memcpy(call.made[k].size, to->size, sizeof to->size);
    }
    *out = ms_opcall_run(trace, &call, &x, 1);
    return trace->err;
}

ms_err ms_convlayers_pool(ms_trace *trace, const ms_layer *layer,
                          const uint32_t *in, uint32_t *out)
{
    shape to;
    MS_TRY(pooled(trace, layer, in[0], &to));
    return resize(trace, layer, in[0], layer->kind->op, &to, out);
}

const ms_field ms_convlayers_adaptive_fields[MS_CONVLAYERS_ADAPTIVE] = {
    {.name = "size",
     .type = MS_INT,
     .fallback.i = 1,
     .low = 1,
     .high = MAX_KERNEL,
     .help = "height and width of the output"},
};

/* A mean of a tensor of channels_last is laid out so by as_strided_
 * (ATen/native/AdaptiveAveragePooling.cpp): a view with a node of its own. */
static uint32_t restride(ms_trace *trace, uint32_t x)
{
    uint32_t y = ms_trace_alias(trace, x);
    if (y != MS_NONE)
        ms_trace_node(trace, ms_opcall_rule(trace, "aten::as_strided"), &x, 1,
                      &y, 1);
    ms_trace_drop(trace, x);
    return y;
}

/* An average to a size of 1 is computed as a mean. */
ms_err ms_convlayers_adaptive(ms_trace *trace, const ms_layer *layer,
                              const uint32_t *in, uint32_t *out)
{
    const ms_layer_kind *kind = layer->kind;
    bool average = strstr(kind->type, "avg") != NULL;
    shape to;
    MS_TRY(open_shape(trace, layer, in[0], spatial_of(layer), &to));
    for (uint32_t d = 2; d < to.n_dims; d++)
        to.size[d] = layer->field[0].i;
    if (!average || layer->field[0].i > 1)
        return resize(trace, layer, in[0], kind->op, &to, out);
    bool last =
        to.n_dims == 4 && ms_conv_is_channels_last(ms_trace_at(trace, in[0]));
    *out = ms_reduce_mean(trace, in[0], to.n_dims - 2);
    if (last)
        *out = restride(trace, *out);
    return trace->err;
}

/* ---- upsampling ---------------------------------------------------------- */

enum { UPSAMPLE_SCALE, UPSAMPLE_MODE };
#define UPSAMPLE_MODES 5
const ms_field ms_convlayers_upsample_fields[MS_CONVLAYERS_UPSAMPLE] = {
    {.name = "scale",
     .type = MS_INT,
     .fallback.i = 2,
     .low = 1,
     .high = 1 << 10,
     .help = "factor of each dimension"},
    {.name = "mode",
     .type = MS_WORD,
     .words = "nearest|linear|bilinear|bicubic|trilinear",
     .help = "how values between are made"},
};

/* By mode and number of dimensions. */
static const char *const upsample_ops[UPSAMPLE_MODES][3] = {
    {"aten::upsample_nearest1d", "aten::upsample_nearest2d",
     "aten::upsample_nearest3d"},
    {"aten::upsample_linear1d", NULL, NULL},
    {NULL, "aten::upsample_bilinear2d", NULL},
    {NULL, "aten::upsample_bicubic2d", NULL},
    {NULL, NULL, "aten::upsample_trilinear3d"},
};

ms_err ms_convlayers_upsample(ms_trace *trace, const ms_layer *layer,
                              const uint32_t *in, uint32_t *out)
{
    char text[MS_LAYERS_SHAPE];
    const char *op = NULL;
    shape to;
    MS_TRY(ms_layers_need_float(trace, layer, in[0]));
    const ms_tensor *x = ms_trace_at(trace, in[0]);
    if (x->n_dims >= 3 && x->n_dims <= 5)
        op = upsample_ops[layer->field[UPSAMPLE_MODE].i][x->n_dims - 3];
    if (!op)
        return ms_trace_fail(trace, layer,
                             "linear is for 1 dimension after the channels, "
                             "bilinear and bicubic for 2, trilinear for 3",
                             "\"%s\" cannot resample what \"%s\" gives: %s",
                             layer->name,
                             ms_layers_source(trace->settings, layer, 0),
                             ms_layers_shape(x, text));
    MS_TRY(open_shape(trace, layer, in[0], x->n_dims - 2, &to));
    for (uint32_t d = 2; d < to.n_dims; d++)
        if (__builtin_mul_overflow(to.size[d], layer->field[UPSAMPLE_SCALE].i,
                                   &to.size[d]))
            to.size[d] = INT64_MAX; /* the tensor's product overflows too */
    return resize(trace, layer, in[0], op, &to, out);
}

/* ---- pixel shuffle ------------------------------------------------------- */

const ms_field ms_convlayers_shuffle_fields[MS_CONVLAYERS_SHUFFLE] = {
    {.name = "factor",
     .type = MS_INT,
     .required = true,
     .low = 1,
     .high = 1 << 10,
     .help = "f: of height and width"},
};

ms_err ms_convlayers_shuffle(ms_trace *trace, const ms_layer *layer,
                             const uint32_t *in, uint32_t *out)
{
    const ms_layer_kind *kind = layer->kind;
    int64_t f = layer->field[0].i;
    bool back = strcmp(kind->type, "pixel_unshuffle") == 0;
    char text[MS_LAYERS_SHAPE];
    shape to;
    MS_TRY(open_shape(trace, layer, in[0], 2, &to));
    bool divides = back ? to.size[2] % f == 0 && to.size[3] % f == 0
                        : to.size[1] % (f * f) == 0;
    if (!divides)
        return ms_trace_fail(
            trace, layer,
            back ? "height and width must be multiples of the factor"
                 : "the channels must be a multiple of the factor's square",
            "\"%s\": a factor of %lld does not divide what \"%s\" gives: %s",
            layer->name, (long long)f,
            ms_layers_source(trace->settings, layer, 0),
            ms_layers_shape(ms_trace_at(trace, in[0]), text));
    to.size[1] = back ? to.size[1] * f * f : to.size[1] / (f * f);
    for (uint32_t d = 2; d < 4; d++)
        to.size[d] = back ? to.size[d] / f : to.size[d] * f;
    return resize(trace, layer, in[0], kind->op, &to, out);
}
