/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Layers over [channels, ...] of images, sequences and volumes. */
#include "graphs/layers.h"

#define MAX_KERNEL (INT64_C(1) << 16)

/* Sizes of an output under way: [batch, channels, ...]. */
typedef struct shape {
    uint32_t n_dims;
    int64_t size[MS_MAX_DIMS];
} shape;

/* Faults unless x is [channels, ...] with so many dimensions after them. */
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
                             ms_layers_source(trace, layer, 0),
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

    return ms_trace_fail(trace, layer, "pad it, or take a smaller kernel",
                         "\"%s\": the output %s of \"%s\" is smaller than its "
                         "kernel of %lld",
                         layer->name,
                         ms_layers_shape(ms_trace_at(trace, x), text),
                         ms_layers_source(trace, layer, 0), (long long)kernel);
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
    CONV_BIAS
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
    {.name = "bias", .type = MS_BOOL, .fallback.b = true, .help = "add a bias"},
};

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
        layer->name, (long long)channels, ms_layers_source(trace, layer, 0),
        (long long)out, (long long)groups);
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
        dims[d] = layer->field[CONV_KERNEL].i;
    return ms_trace_parameter(trace, "weight", in->n_dims, dims);
}

/* 2 per element of the narrow side and weight that it meets. */
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

static ms_err convolve(ms_trace *trace, const ms_layer *layer, uint32_t spatial,
                       bool transposed, uint32_t x, uint32_t *out)
{
    const ms_value *field = layer->field;
    window w = {field[CONV_KERNEL].i, field[CONV_STRIDE].i,
                field[CONV_PADDING].i, field[CONV_DILATION].i};
    uint32_t bias = MS_NONE;
    shape in;

    MS_TRY(open_shape(trace, layer, x, spatial, &in));
    MS_TRY(check_groups(trace, layer, in.size[1]));
    shape to = in;
    to.size[1] = field[CONV_OUT].i;
    for (uint32_t d = 2; d < in.n_dims; d++) {
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

#define CONVOLUTION(name, spatial, transposed)                                 \
    ms_err ms_convlayers_##name(ms_trace *trace, const ms_layer *layer,        \
                                const uint32_t *in, uint32_t *out)             \
    {                                                                          \
        return convolve(trace, layer, spatial, transposed, in[0], out);        \
    }

CONVOLUTION(conv1d, 1, false)
CONVOLUTION(conv2d, 2, false)
CONVOLUTION(conv3d, 3, false)
CONVOLUTION(conv_transpose2d, 2, true)

/* ---- pooling ------------------------------------------------------------- */

enum { POOL_KERNEL, POOL_STRIDE, POOL_PADDING };
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
};

static ms_err pooled(ms_trace *trace, const ms_layer *layer, uint32_t x,
                     shape *to)
{
    int64_t stride = layer->field[POOL_STRIDE].i;
    window w = {layer->field[POOL_KERNEL].i, stride,
                layer->field[POOL_PADDING].i, 1};

    if (stride == 0)
        w.stride = w.kernel;
    MS_TRY(open_shape(trace, layer, x, 2, to));
    if (2 * w.padding > w.kernel)
        return ms_trace_fail(trace, layer, "take a smaller padding",
                             "\"%s\": a padding of %lld is more than half the "
                             "window of %lld",
                             layer->name, (long long)w.padding,
                             (long long)w.kernel);
    for (uint32_t d = 2; d < 4; d++) {
        to->size[d] = windows_of(to->size[d], &w);
        if (to->size[d] == 0)
            return fail_small(trace, layer, x, w.kernel);
    }
    return MS_OK;
}

ms_err ms_convlayers_max_pool2d(ms_trace *trace, const ms_layer *layer,
                                const uint32_t *in, uint32_t *out)
{
    shape to;

    MS_TRY(pooled(trace, layer, in[0], &to));
    *out = ms_conv_max_pool(trace, in[0], to.size);
    return trace->err;
}

ms_err ms_convlayers_avg_pool2d(ms_trace *trace, const ms_layer *layer,
                                const uint32_t *in, uint32_t *out)
{
    shape to;

    MS_TRY(pooled(trace, layer, in[0], &to));
    *out = ms_conv_avg_pool(trace, in[0], to.size, false);
    return trace->err;
}

const ms_field ms_convlayers_adaptive_fields[MS_CONVLAYERS_ADAPTIVE] = {
    {.name = "size",
     .type = MS_INT,
     .fallback.i = 1,
     .low = 1,
     .high = MAX_KERNEL,
     .help = "height and width of the output"},
};

/* A size of 1 is computed as a mean. */
ms_err ms_convlayers_adaptive_avg_pool2d(ms_trace *trace, const ms_layer *layer,
                                         const uint32_t *in, uint32_t *out)
{
    shape to;

    MS_TRY(open_shape(trace, layer, in[0], 2, &to));
    to.size[2] = to.size[3] = layer->field[0].i;
    *out = layer->field[0].i == 1
               ? ms_reduce_mean(trace, in[0], 2)
               : ms_conv_avg_pool(trace, in[0], to.size, true);
    return trace->err;
}

/* ---- upsampling ---------------------------------------------------------- */

enum { UPSAMPLE_SCALE, UPSAMPLE_MODE };
const ms_field ms_convlayers_upsample_fields[MS_CONVLAYERS_UPSAMPLE] = {
    {.name = "scale",
     .type = MS_INT,
     .fallback.i = 2,
     .low = 1,
     .high = 1 << 10,
     .help = "factor of height and width"},
    {.name = "mode",
     .type = MS_WORD,
     .words = "nearest|bilinear",
     .help = "how pixels between are made"},
};

ms_err ms_convlayers_upsample(ms_trace *trace, const ms_layer *layer,
                              const uint32_t *in, uint32_t *out)
{
    shape to;

    MS_TRY(open_shape(trace, layer, in[0], 2, &to));
    for (uint32_t d = 2; d < 4; d++)
        if (__builtin_mul_overflow(to.size[d], layer->field[UPSAMPLE_SCALE].i,
                                   &to.size[d]))
            to.size[d] = INT64_MAX; /* the tensor's product overflows too */
    *out = ms_conv_upsample(trace, in[0], to.size,
                            layer->field[UPSAMPLE_MODE].i == 1);
    return trace->err;
}
