/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/machines/times/producttime.h"

#include <math.h>

#define NS 1e9
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

/* ---- tiles --------------------------------------------------------------- */

double ms_producttime_moved_ns(const ms_device *device, double bytes)
{
    return bytes /
           (device->hbm_bytes_per_s * device->product.memory_share / NS);
}

/* All waves of so many tiles of one kind, k in so many parts. */
static double waves_ns(const ms_device *device, const ms_product_shape *s,
                       const ms_product_kernel *kernel, double tiles,
                       double tile_ns, double parts)
{
    double waves = ceil(tiles * parts / (double)device->multiprocessors);
    double depth =
        ceil(s->k / parts / kernel->step) * kernel->step + kernel->depth;
    double ns = waves * depth * tile_ns;
    if (parts > 1)
        ns +=
            SPLIT_NS + ms_producttime_moved_ns(
                           device, PART_BYTES * parts * s->batch * s->m * s->n);
    return ns;
}

/* More parts than fill the multiprocessors a few times gain nothing. */
double ms_producttime_tiles_ns(const ms_device *device, ms_product_shape s,
                               const ms_product_kernel *kernel)
{
    double most = FULL_WAVES * (double)device->multiprocessors;
    double per_ns = kernel->flops_per_s / NS / (double)device->multiprocessors;
    double least_ns = INFINITY;
    for (uint32_t i = 0; i < kernel->n_tiles; i++) {
        const ms_product_tile *tile = &kernel->tiles[i];
        if (tile->share <= 0)
            continue;
        double tiles =
            ceil(s.m / tile->rows) * ceil(s.n / tile->columns) * s.batch;
        double tile_ns =
            tile->rows * tile->columns * 2 / (per_ns * tile->share);
        double parts = kernel->parts;
        while (parts > TENSOR_PARTS && tiles * parts > most)
            parts /= 2;
        for (; parts >= 1; parts /= 2)
            least_ns = fmin(
                least_ns, waves_ns(device, &s, kernel, tiles, tile_ns, parts));
    }
    return least_ns;
}

double ms_producttime_beside_ns(const ms_device *device, double ns,
                                double bytes)
{
    double moved_ns = ms_producttime_moved_ns(device, bytes);
    double sharpness = device->product.sharpness;
    double longer = fmax(ns, moved_ns), shorter = fmin(ns, moved_ns);
    return longer * pow(1 + pow(shorter / longer, sharpness), 1 / sharpness);
}

/* ---- products ------------------------------------------------------------ */

/* In elements of k; outside tensor cores as long as in them. */
double ms_producttime_depth(const ms_device *device, double flops_per_s,
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
    ms_product_tile tiles[MS_N_TILES];
    const ms_product_kernel kernel = {
        .tiles = tiles,
        .n_tiles = MS_N_TILES,
        .flops_per_s = flops_per_s,
        .depth = ms_producttime_depth(device, flops_per_s, unit),
        .step = unit == MS_UNIT_PLAIN ? PLAIN_STEP : TENSOR_STEP,
        .parts = unit == MS_UNIT_PLAIN ? PLAIN_PARTS : TENSOR_PARTS};
    for (uint32_t i = 0; i < MS_N_TILES; i++) {
        double share = rates->tile_share[i];
        bool plain = share > 0 && unit == MS_UNIT_PLAIN;
        tiles[i] = (ms_product_tile){sides[i][0], sides[i][1],
                                     plain ? 1 : shares[unit] * share};
    }
    return rates->start_ns +
           ms_producttime_beside_ns(
               device, ms_producttime_tiles_ns(device, shape, &kernel), bytes);
}

/* ---- attention ----------------------------------------------------------- */

/* Queries of a block; waves that blocks of unlike length take more. */
#define BLOCK 128.0
#define UNEVEN 0.55
/* FLOPs of a query, a key and a channel. */
#define FORWARD 4.0
#define BACKWARD 10.0

/* Keys that a block takes longer by, to begin and to end; what a kernel takes
 * beside a product's start; and the share at 64 and at 256 channels of that at
 * 128. */
static const struct {
    double keys, start_ns, of_64, of_256;
} kernels[MS_N_ATTENTION_CODES] = {
    [MS_FLASH_1] = {100, 1000, 1, 0.8},
    [MS_FLASH_2] = {200, 1000, 0.9, 0.88},
    [MS_FLASH_3] = {420, 4500, 0.78, 1.08},
    [MS_ATTENTION_EFFICIENT] = {60, 1000, 0.77, 0.8},
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

/* The last block of a causal mask sees twice as many keys as they do on
 * average. */
double ms_producttime_attention_ns(const ms_device *device,
                                   ms_attention_code kernel, bool backward,
                                   ms_attention_shape shape, double flops,
                                   double flops_per_s)
{
    double rate = flops_per_s / NS / (double)device->multiprocessors *
                  device->attention_share[kernel][backward] *
                  of_head(kernel, shape.head);
    double pair = (backward ? BACKWARD : FORWARD) * shape.head;
    double queries = flops / (pair * shape.keys);
    double blocks =
        queries / fmax(1, shape.queries) * fmax(1, ceil(shape.queries / BLOCK));
    double most = fmax(shape.keys, fmin(shape.queries, 2 * shape.keys));
    double key_ns = BLOCK * pair / rate;
    double waves = blocks / (double)device->multiprocessors + UNEVEN;
    return device->product.start_ns + kernels[kernel].start_ns +
           key_ns * fmax(waves * (shape.keys + kernels[kernel].keys),
                         most + kernels[kernel].keys);
}
