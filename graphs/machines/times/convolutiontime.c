/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/machines/times/convolutiontime.h"
#include "graphs/machines/times/memorytime.h"

#include <math.h>

/* Of compute_capability. */
#define TURING 75u
#define AMPERE 80u
#define HALF_BYTES 2.0
#define FP32_BYTES 4.0
#define KERNEL_NS 2000.0 /* of each that lays out, clears or sums */
/* Of channels that a tap goes on by; of k. */
#define HALF_STEP 32.0
#define FP32_STEP 8.0 /* and of channels innermost */
#define HALF_PARTS 32.0
#define WEIGHT_PARTS 64.0
/* Bytes of each element of the weight that is laid out. */
#define LAID_BYTES 2.7
#define NARROW 64.0 /* channels */
#define N_WEIGHT_TILES 6u

/* ---- what both formats share --------------------------------------------- */

/* The rate of its tiles, of a product's; kernels beside the one that
 * multiplies, by pass; bytes of an element of a weight's gradient, which is
 * cleared, added to and cast.  strided: kernels of the gradient with a stride,
 * of those without; how much slower they multiply; how often the image is
 * moved. */
typedef struct format {
    double rate;
    double bytes; /* of an element */
    double kernels[MS_N_CONVOLUTION_PASSES];
    double summed_bytes;
    double strided_kernels, strided_slower, strided_moved;
    uint32_t n_weight_tiles;
} format;

static const format volta = {0.92, HALF_BYTES, {1.7, 2.2, 5.2}, 0, 1,
                             0.95, 1,          N_WEIGHT_TILES};
static const format turing = {1, HALF_BYTES, {1.7, 2.2, 5.2}, 7.7, 1, 1.5,
                              1, 1};
static const format fp32 = {1,   FP32_BYTES, {6.5, 5, 8.9}, 17,
                            2.2, 1.36,       1.7,           N_WEIGHT_TILES};

/* Elements of an image that is read, of outputs, and of the weight. */
typedef struct sizes {
    double image, outputs, weight;
} sizes;

static sizes sizes_of(const ms_convolution *c)
{
    ms_product_shape s = c->product;
    double over = c->stride * c->stride;
    double read = fmin(1, sqrt(c->taps) / c->stride);
    switch (c->pass) {
    case MS_CONVOLUTION_INPUT:
        return (sizes){s.m * s.n, s.m * s.k / c->taps, s.n * s.k * over};
    case MS_CONVOLUTION_WEIGHT:
        return (sizes){read * s.k * over * s.n / c->taps, s.k * s.m, s.m * s.n};
    case MS_CONVOLUTION_FORWARD:
    default:
        return (sizes){read * s.m * over * s.k / c->taps, s.m * s.n, s.n * s.k};
    }
}

static double whole(double x, double step)
{
    return ceil(x / step) * step;
}

/* The implicit product's own time, and what is moved and launched beside. */
static double implicit_ns(const ms_device *device, const ms_convolution *c,
                          const format *f, double product_ns)
{
    sizes of = sizes_of(c);
    bool of_weight = c->pass == MS_CONVOLUTION_WEIGHT;
    double start_ns =
        device->product.start_ns + KERNEL_NS * f->kernels[c->pass];
    double weight_ns = ms_producttime_moved_ns(
        device, of.weight * (of_weight ? f->summed_bytes : LAID_BYTES));
    if (c->pass == MS_CONVOLUTION_INPUT && c->stride > 1)
        return start_ns * f->strided_kernels + weight_ns +
               f->strided_slower * product_ns +
               ms_producttime_moved_ns(device,
                                       f->strided_moved * f->bytes * of.image);
    return start_ns + weight_ns +
           ms_producttime_beside_ns(device, product_ns,
                                    f->bytes * (of.image + of.outputs));
}

/* Of the positions that a stride goes over each has some of the taps: so many
 * as there are, but of as few positions as there are outputs. */
static ms_product_shape shape_of(const ms_convolution *c)
{
    ms_product_shape shape = c->product;
    if (c->pass == MS_CONVOLUTION_INPUT) {
        shape.m = fmax(1, shape.m / (c->stride * c->stride));
        shape.k *= c->stride * c->stride;
    }
    return shape;
}

/* ---- 16 bits before Ampere ----------------------------------------------- */

#define N_HALF_TILES 5u
static const ms_product_tile half_tiles[] = {
    {256, 128, 1},   {128, 128, 1},  {256, 64, 0.89},
    {128, 64, 0.89}, {64, 64, 0.79},
};
static const ms_product_tile wide_tiles[] = {{256, 128, 1}, {128, 128, 1}};
static const ms_product_tile narrow_tiles[] = {{256, 64, 0.89},
                                               {128, 64, 0.89}};
static const ms_product_tile weight_tiles[] = {
    {128, 128, 1},  {128, 64, 0.89}, {64, 128, 0.89},
    {64, 64, 0.79}, {128, 32, 0.51}, {64, 32, 0.45},
};

static bool is_outside(const ms_convolution *c)
{
    return !c->is_innermost && !c->is_turned;
}

static double channels_of(const ms_convolution *c)
{
    return is_outside(c) ? HALF_STEP : FP32_STEP;
}

/* Each tap of a weight's gradient has tiles of its own. */
static double half_weight_ns(const ms_device *device, const ms_convolution *c,
                             ms_product_kernel kernel, uint32_t n)
{
    double least_ns = INFINITY;
    kernel.parts = WEIGHT_PARTS;
    kernel.n_tiles = 1;
    for (uint32_t i = 0; i < n; i++) {
        ms_product_shape shape = c->product;
        kernel.tiles = &weight_tiles[i];
        if (is_outside(c))
            shape.n = c->taps * whole(shape.n / c->taps, kernel.tiles->columns);
        least_ns =
            fmin(least_ns, ms_producttime_tiles_ns(device, shape, &kernel));
    }
    return least_ns;
}

static double half_ns(const ms_device *device, const ms_convolution *c,
                      const format *f, double flops_per_s)
{
    ms_product_shape shape = shape_of(c);
    double rate = f->rate * flops_per_s * device->product.tile_share[1];
    ms_product_kernel kernel = {
        .tiles = half_tiles,
        .n_tiles = N_HALF_TILES,
        .flops_per_s = rate,
        .depth = ms_producttime_depth(device, rate, MS_UNIT_TENSOR),
        .step = HALF_STEP,
        .parts = HALF_PARTS,
        .by_memory = true};
    if (c->pass == MS_CONVOLUTION_WEIGHT)
        return half_weight_ns(device, c, kernel, f->n_weight_tiles);
    shape.k = c->taps * whole(shape.k / c->taps, channels_of(c));
    if (c->pass == MS_CONVOLUTION_INPUT) {
        kernel.tiles = shape.n > NARROW ? wide_tiles : narrow_tiles;
        kernel.n_tiles = 2;
        kernel.parts = 1;
    }
    return ms_producttime_tiles_ns(device, shape, &kernel);
}

/* ---- fp32 ---------------------------------------------------------------- */

static const ms_product_tile fp32_tiles[] = {
    {128, 128, 1}, {128, 64, 0.97}, {128, 32, 0.86}};
static const ms_product_tile fp32_weight_tiles[] = {
    {128, 128, 0.7}, {64, 128, 0.69}, {32, 128, 0.69},
    {128, 64, 0.52}, {64, 64, 0.52},  {32, 32, 0.39},
};
#define N_FP32_TILES 3u
#define N_WINOGRAD_TILES 2u /* the first of fp32_tiles */

static ms_product_kernel fp32_kernel(const ms_device *device, double rate)
{
    return (ms_product_kernel){
        .tiles = fp32_tiles,
        .n_tiles = N_FP32_TILES,
        .flops_per_s = rate,
        .depth = ms_producttime_depth(device, rate, MS_UNIT_PLAIN),
        .step = FP32_STEP,
        .parts = 1,
        .by_memory = true};
}

static double fp32_ns(const ms_device *device, const ms_convolution *c,
                      double rate)
{
    ms_product_kernel kernel = fp32_kernel(device, rate);
    if (c->pass == MS_CONVOLUTION_WEIGHT) {
        kernel.tiles = fp32_weight_tiles;
        kernel.n_tiles = N_WEIGHT_TILES;
        kernel.parts = WEIGHT_PARTS;
    }
    return ms_producttime_tiles_ns(device, shape_of(c), &kernel);
}

/* F(4 x 4, 3 x 3) in kernels of its own: products, the side of what each makes,
 * how many images go together, and their rate, of others'. */
#define PRODUCTS 36.0
#define MADE 4.0
#define IMAGES 16.0
#define AREA 9.0
#define WINOGRAD_SHARE 1.17
#define WINOGRAD_KERNELS 4.0

static double images_of(const ms_convolution *c, double positions)
{
    return fmax(1, positions / (c->side * c->side));
}

static double winograd_ns(const ms_device *device, const ms_convolution *c,
                          double rate)
{
    ms_product_kernel kernel = fp32_kernel(device, rate * WINOGRAD_SHARE);
    ms_product_shape s = c->product;
    bool of_weight = c->pass == MS_CONVOLUTION_WEIGHT;
    double images = images_of(c, of_weight ? s.k : s.m);
    double tiles = ceil(c->side / MADE) * ceil(c->side / MADE);
    s.batch = PRODUCTS;
    if (of_weight) {
        s.n /= AREA;
        s.k = images * tiles;
    } else {
        s.m = whole(images, IMAGES) * tiles;
        s.k /= AREA;
    }
    sizes of = sizes_of(c);
    double channels = of_weight ? s.m + s.n : s.n + s.k;
    double moved =
        FP32_BYTES * PRODUCTS * (images * tiles * channels + of.weight / AREA);
    kernel.n_tiles = N_WINOGRAD_TILES;
    return device->product.start_ns + KERNEL_NS * WINOGRAD_KERNELS +
           ms_producttime_moved_ns(
               device, FP32_BYTES * (of.image + of.outputs) + moved) +
           ms_producttime_beside_ns(
               device, ms_producttime_tiles_ns(device, s, &kernel), moved);
}

/* F(2 x 2, 3 x 3) in one kernel: 16 products for 36. */
#define FUSED_SHARE 0.58
#define FUSED_LESS 2.25
static const ms_product_tile fused_tile = {128, 64, 1};

static double fused_ns(const ms_device *device, const ms_convolution *c,
                       double rate)
{
    ms_product_kernel kernel = fp32_kernel(device, rate * FUSED_SHARE);
    ms_product_shape s = c->product;
    double images = images_of(c, s.m);
    kernel.tiles = &fused_tile;
    kernel.n_tiles = 1;
    s.m = images * whole(c->side, 2) * whole(c->side, 2);
    s.k = AREA / FUSED_LESS * whole(s.k / AREA, FP32_STEP);
    sizes of = sizes_of(c);
    return device->product.start_ns +
           KERNEL_NS * fp32.kernels[MS_CONVOLUTION_FORWARD] +
           ms_producttime_beside_ns(device,
                                    ms_producttime_tiles_ns(device, s, &kernel),
                                    FP32_BYTES * (of.image + of.outputs));
}

static double plain_ns(const ms_device *device, const ms_convolution *c,
                       double flops_per_s)
{
    double rate = device->convolution_share * flops_per_s;
    double ns = implicit_ns(device, c, &fp32, fp32_ns(device, c, rate));
    if (!c->is_three)
        return ns;
    ns = fmin(ns, winograd_ns(device, c, rate));
    return c->pass == MS_CONVOLUTION_WEIGHT
               ? ns
               : fmin(ns, fused_ns(device, c, rate));
}

/* ---- tensor cores since Ampere ------------------------------------------- */

/* Of fp32's peak that groups without a kernel reach; channels of a tile that
 * narrow groups share. */
#define GROUPED_SHARE 0.24
#define GROUPED_WIDTH 64.0

static bool has_kernel(double width)
{
    return width == 4 || width == 8 || width == 16 || width == 32;
}

/* Narrow groups share a tile, of which what belongs to none is zero. */
static ms_product_shape tiled(const ms_convolution *c)
{
    ms_product_shape shape = c->product;
    double width = fmin(shape.m, shape.n);
    double shared = fmin(shape.batch, floor(GROUPED_WIDTH / width));
    if (shared <= 1)
        return shape;
    bool of_weight = c->pass == MS_CONVOLUTION_WEIGHT;
    return (ms_product_shape){
        shape.batch / shared, shape.m * (of_weight ? shared : 1),
        shape.n * shared, shape.k * (of_weight ? 1 : shared)};
}

static double tensor_ns(const ms_device *device, const ms_convolution *c,
                        double flops_per_s, double bytes)
{
    ms_product_shape shape = c->product;
    if (shape.batch > 1.5) {
        if (c->is_innermost && !has_kernel(fmin(shape.m, shape.n)))
            return ms_producttime_implicit_ns(
                device, shape, GROUPED_SHARE * device->fp32_flops, bytes,
                MS_UNIT_PLAIN);
        shape = tiled(c);
    }
    return ms_producttime_implicit_ns(device, shape, flops_per_s, bytes,
                                      MS_UNIT_TENSOR);
}

double ms_convolutiontime_ns(const ms_device *device, const ms_convolution *c,
                             double flops_per_s, double bytes,
                             ms_product_unit unit)
{
    uint32_t capability = device->compute_capability;
    const format *f = capability < TURING ? &volta : &turing;
    double ns;
    if (unit == MS_UNIT_PLAIN)
        return plain_ns(device, c, flops_per_s);
    if (capability > 0 && capability < AMPERE && c->product.batch < 1.5)
        ns = implicit_ns(device, c, f, half_ns(device, c, f, flops_per_s));
    else
        ns = tensor_ns(device, c, flops_per_s, bytes);
    return c->is_turned
               ? ns + ms_memorytime_ns(device, MS_STREAM, 2 * bytes, 0, 0)
               : ns;
}
