/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/machines/times/producttime.h"
#include "graphs/machines/times/memorytime.h"

#include <math.h>

#define NS 1e9
#define FP32_BYTES 4.0
/* Of k that a tile goes on by. */
#define TENSOR_STEP 64.0
#define PLAIN_STEP 16.0
/* At most so many parts of k, powers of 2. */
#define TENSOR_PARTS 8.0
#define PLAIN_PARTS 64.0
#define FULL_WAVES 8.0
/* Bytes of an element of a part that is summed, written and read. */
#define PART_BYTES 8.0
#define SPLIT_NS 2000.0 /* of the kernel that sums them */

static const double sides[MS_N_TILES][2] = {
    {256, 128}, {128, 128}, {128, 64}, {64, 64}};

/* ---- products ------------------------------------------------------------ */

typedef struct product {
    const ms_device *device;
    ms_product_shape shape;
    double per_ns;       /* FLOPs of a multiprocessor at its peak */
    double bytes_per_ns; /* of the memory, as products use it */
    double depth, step;  /* of k: that tiles take more; that they go on by */
    double share;        /* of a tile's; 0: tiles have none */
} product;

/* All waves of so many tiles of one kind, k in so many parts. */
static double waves_ns(const product *p, double tiles, double tile_ns,
                       double parts)
{
    const ms_product_shape *s = &p->shape;
    double waves = ceil(tiles * parts / (double)p->device->multiprocessors);
    double depth = ceil(s->k / parts / p->step) * p->step + p->depth;
    double ns = waves * depth * tile_ns;
    if (parts > 1)
        ns += SPLIT_NS +
              PART_BYTES * parts * s->batch * s->m * s->n / p->bytes_per_ns;
    return ns;
}

/* More parts than fill the multiprocessors a few times gain nothing. */
static double fastest_ns(const product *p)
{
    const ms_product_shape *s = &p->shape;
    double most = FULL_WAVES * (double)p->device->multiprocessors;
    double least_ns = INFINITY;
    for (uint32_t tile = 0; tile < MS_N_TILES; tile++) {
        const double *side = sides[tile];
        double share = p->device->product.tile_share[tile];
        if (share <= 0)
            continue;
        double tiles = ceil(s->m / side[0]) * ceil(s->n / side[1]) * s->batch;
        double tile_ns = side[0] * side[1] * 2 /
                         (p->per_ns * (p->share > 0 ? p->share * share : 1));
        double parts = p->share > 0 ? TENSOR_PARTS : PLAIN_PARTS;
        while (parts > TENSOR_PARTS && tiles * parts > most)
            parts /= 2;
        for (; parts >= 1; parts /= 2)
            least_ns = fmin(least_ns, waves_ns(p, tiles, tile_ns, parts));
    }
    return least_ns;
}

/* In elements of k; outside tensor cores as long as in them. */
static double depth_of(const ms_device *device, double flops_per_s,
                       ms_product_unit unit)
{
    const ms_product_rates *rates = &device->product;
    if (unit == MS_UNIT_FP8)
        return rates->fp8_depth;
    return unit == MS_UNIT_TENSOR
               ? rates->depth
               : rates->depth * fmin(1, flops_per_s / device->half_flops);
}

double ms_producttime_ns(const ms_device *device, ms_product_shape shape,
                         double flops_per_s, double bytes, ms_product_unit unit)
{
    const ms_product_rates *rates = &device->product;
    const double shares[] = {0, 1, rates->fp8_share};
    const product p = {
        .device = device,
        .shape = shape,
        .per_ns = flops_per_s / NS / (double)device->multiprocessors,
        .bytes_per_ns = device->hbm_bytes_per_s * rates->memory_share / NS,
        .depth = depth_of(device, flops_per_s, unit),
        .step = unit == MS_UNIT_PLAIN ? PLAIN_STEP : TENSOR_STEP,
        .share = shares[unit]};
    double moved_ns = bytes / p.bytes_per_ns;
    double ns = fastest_ns(&p);
    double longer = fmax(ns, moved_ns), shorter = fmin(ns, moved_ns);
    return rates->start_ns +
           longer * pow(1 + pow(shorter / longer, rates->sharpness),
                        1 / rates->sharpness);
}

/* ---- convolutions -------------------------------------------------------- */

/* Of fp32's peak that groups without a kernel reach; channels of a tile that
 * narrow groups share. */
#define GROUPED_SHARE 0.24
#define GROUPED_WIDTH 64.0
#define WINOGRAD_TILES 16.0 /* products */
#define WINOGRAD_MADE 4.0   /* positions by each */
#define WINOGRAD_AREA 9.0

/* Of a product's rate in fp32. */
static const struct {
    double implicit, winograd;
} families[MS_N_CONVOLUTION_PASSES] = {{0.89, 0.73}, {0.7, 0.67}, {0.66, 0.77}};

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
            return ms_producttime_ns(device, shape,
                                     GROUPED_SHARE * device->fp32_flops, bytes,
                                     MS_UNIT_PLAIN);
        shape = tiled(c);
    }
    double ns =
        ms_producttime_ns(device, shape, flops_per_s, bytes, MS_UNIT_TENSOR);
    return c->is_innermost
               ? ns
               : ns + ms_memorytime_ns(device, MS_STREAM, 2 * bytes, 0, 0);
}

static double winograd_ns(const ms_device *device, const ms_convolution *c,
                          double flops_per_s)
{
    ms_product_shape s = c->product;
    bool of_weight = c->pass == MS_CONVOLUTION_WEIGHT;
    s.batch = WINOGRAD_TILES;
    if (of_weight) {
        s.n /= WINOGRAD_AREA;
        s.k = fmax(1, s.k / WINOGRAD_MADE);
    } else {
        s.m = fmax(1, s.m / WINOGRAD_MADE);
        s.k = fmax(1, s.k / WINOGRAD_AREA);
    }
    double bytes = FP32_BYTES * s.batch * (s.m * s.n + s.m * s.k + s.n * s.k);
    return ms_producttime_ns(device, s,
                             flops_per_s * families[c->pass].winograd, bytes,
                             MS_UNIT_PLAIN);
}

double ms_producttime_convolution_ns(const ms_device *device,
                                     const ms_convolution *c,
                                     double flops_per_s, double bytes,
                                     ms_product_unit unit)
{
    if (unit != MS_UNIT_PLAIN)
        return tensor_ns(device, c, flops_per_s, bytes);
    double ns = ms_producttime_ns(device, c->product,
                                  flops_per_s * families[c->pass].implicit,
                                  bytes, MS_UNIT_PLAIN);
    return c->is_three ? fmin(ns, winograd_ns(device, c, flops_per_s)) : ns;
}

/* ---- attention ----------------------------------------------------------- */

/* Keys beside which half of the peak is lost, and the share at 64 and at 256
 * channels of that at 128, by kernel. */
static const struct {
    double keys, of_64, of_256;
} kernels[MS_N_ATTENTION_CODES] = {
    [MS_FLASH_1] = {100, 1, 0.8},
    [MS_FLASH_2] = {200, 0.9, 0.88},
    [MS_FLASH_3] = {220, 0.77, 1.08},
    [MS_ATTENTION_EFFICIENT] = {60, 0.77, 0.8},
};

static double of_head(ms_attention_code kernel, double head)
{
    double of_64 = kernels[kernel].of_64, of_256 = kernels[kernel].of_256;
    if (head <= 64)
        return of_64 * head / 64;
    if (head <= 128)
        return of_64 + (1 - of_64) * (head - 64) / 64;
    return head < 256 ? 1 + (of_256 - 1) * (head - 128) / 128 : of_256;
}

double ms_producttime_attention_ns(const ms_device *device,
                                   ms_attention_code kernel, bool backward,
                                   double keys, double head, double flops,
                                   double flops_per_s)
{
    double share = device->attention_share[kernel][backward] *
                   of_head(kernel, head) * keys / (keys + kernels[kernel].keys);
    return device->product.start_ns + flops * NS / (flops_per_s * share);
}
