/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/machines/producttime.h"

#include <math.h>

#define NS 1e9
#define STEP 64.0 /* of k that a tile goes on by */
#define N_SPLITS 4u
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
    bool tensor;         /* by tensor cores, which tiles use by their shapes */
} product;

/* All waves of one kind of tile, k in so many parts. */
static double waves_ns(const product *p, uint32_t tile, double parts)
{
    const ms_product_rates *rates = &p->device->product;
    const ms_product_shape *s = &p->shape;
    double processors = (double)p->device->multiprocessors;
    double tiles =
        ceil(s->m / sides[tile][0]) * ceil(s->n / sides[tile][1]) * s->batch;
    double waves = ceil(tiles * parts / processors);
    double depth = ceil(s->k / parts / STEP) * STEP + rates->depth;
    double share = p->tensor ? rates->tile_share[tile] : 1;
    double ns = waves * sides[tile][0] * sides[tile][1] * depth * 2 /
                (p->per_ns * share);
    if (parts > 1)
        ns += SPLIT_NS +
              PART_BYTES * parts * s->batch * s->m * s->n / p->bytes_per_ns;
    return ns;
}

static double fastest_ns(const product *p)
{
    double least_ns = INFINITY;
    for (uint32_t tile = 0; tile < MS_N_TILES; tile++)
        for (uint32_t split = 0;
             split < N_SPLITS && p->device->product.tile_share[tile] > 0;
             split++)
            least_ns = fmin(least_ns, waves_ns(p, tile, (double)(1 << split)));
    return least_ns;
}

double ms_producttime_ns(const ms_device *device, ms_product_shape shape,
                         double flops_per_s, double bytes, bool tensor)
{
    const ms_product_rates *rates = &device->product;
    const product p = {
        .device = device,
        .shape = shape,
        .per_ns = flops_per_s / NS / (double)device->multiprocessors,
        .bytes_per_ns = device->hbm_bytes_per_s * rates->memory_share / NS,
        .tensor = tensor};
    double moved_ns = bytes / p.bytes_per_ns;
    double ns = fastest_ns(&p);
    double longer = fmax(ns, moved_ns), shorter = fmin(ns, moved_ns);
    return rates->start_ns +
           longer * pow(1 + pow(shorter / longer, rates->sharpness),
                        1 / rates->sharpness);
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
