/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/machines/times/producttime.h"
#include "graphs/machines/times/memorytime.h"

#include <math.h>

#define NS 1e9
/* Of k that a tile goes on by. */
#define TENSOR_STEP 64.0
#define PLAIN_STEP 16.0
/* At most so many parts of k, powers of 2. */
#define TENSOR_PARTS 32.0
#define PLAIN_PARTS 64.0
#define FULL_WAVES 8.0
#define LEAST_PARTS 8.0
/* Bytes of an element of a part that is summed, written and read. */
#define PART_BYTES 8.0
#define A100 80u /* their compute capability */
#define H100 90u
#define SPLIT_NS 2000.0 /* of the kernel that sums them */

static const double sides[MS_N_TILES][2] = {
    {256, 128}, {128, 128}, {128, 64}, {64, 64}};

/* ---- tiles --------------------------------------------------------------- */

double ms_producttime_moved_ns(const ms_device *device, double bytes)
{
    return bytes /
           (device->hbm_bytes_per_s * device->product.memory_share / NS);
}

/* They stay in the cache, where they fit. */
static double parts_ns(const ms_device *device, bool by_memory, double bytes)
{
    double cached = by_memory ? 0 : ms_memorytime_cached_share(device, bytes);
    return ms_memorytime_cached_ns(device, bytes * cached) +
           ms_producttime_moved_ns(device, bytes * (1 - cached));
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
        ns += SPLIT_NS + parts_ns(device, kernel->by_memory,
                                  PART_BYTES * parts * s->batch * s->m * s->n);
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
        while (parts > LEAST_PARTS && tiles * parts > most)
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

/* cuBLAS's kernels in fp32, by the names that NeuSight's runs have.  Batched
 * ones have no parts: on Volta volta_sgemm_32x128_nn and 64x64_nn (a Turing has
 * others); on Ampere tiles of 128 rows, which take as long over less of k as
 * over LEAST_K.  Hopper has Ampere's, batched or not, whose small tiles reach
 * less (sm80_xmma_gemm_f32f32, tilesize64x64x8). */
static const ms_product_tile volta_tiles[] = {{128, 32, 0.9}, {64, 64, 0.9}};
static const ms_product_tile ampere_tiles[] = {
    {128, 128, 1}, {128, 64, 1}, {128, 32, 1}};
static const ms_product_tile hopper_tiles[] = {
    {128, 128, 1}, {64, 128, 0.9}, {64, 64, 0.7}};
#define N_VOLTA_TILES 2u
#define N_TILES 3u
#define LEAST_K 112.0
#define TURING 75u

static void take_plain(const ms_device *device, ms_product_shape *shape,
                       ms_product_kernel *kernel)
{
    uint32_t capability = device->compute_capability;
    bool is_batched = shape->batch > 1, is_hopper = capability >= H100;
    if (capability == 0 ||
        (!is_hopper && (!is_batched || capability == TURING)))
        return;
    bool is_volta = capability < TURING;
    kernel->tiles = is_volta ? volta_tiles : ampere_tiles;
    kernel->n_tiles = is_volta ? N_VOLTA_TILES : N_TILES;
    if (is_hopper)
        kernel->tiles = hopper_tiles;
    if (is_batched)
        kernel->parts = 1;
    if (!is_volta && !is_hopper)
        shape->k = fmax(shape->k, LEAST_K);
}

static double product_ns(const ms_device *device, ms_product_shape shape,
                         double flops_per_s, double bytes, ms_product_unit unit,
                         bool by_memory)
{
    const ms_product_rates *rates = &device->product;
    const double shares[] = {0, 1, rates->fp8_share};
    ms_product_tile tiles[MS_N_TILES];
    bool plain = unit == MS_UNIT_PLAIN;
    double tensor_parts = by_memory ? LEAST_PARTS : TENSOR_PARTS;
    ms_product_kernel kernel = {
        .tiles = tiles,
        .n_tiles = MS_N_TILES,
        .flops_per_s = flops_per_s,
        .depth = ms_producttime_depth(device, flops_per_s, unit),
        .step = plain ? PLAIN_STEP : TENSOR_STEP,
        .parts = plain ? PLAIN_PARTS : tensor_parts,
        .by_memory = by_memory};
    for (uint32_t i = 0; i < MS_N_TILES; i++) {
        double share = rates->tile_share[i];
        tiles[i] =
            (ms_product_tile){sides[i][0], sides[i][1],
                              plain && share > 0 ? 1 : shares[unit] * share};
    }
    if (plain && !by_memory)
        take_plain(device, &shape, &kernel);
    return rates->start_ns +
           ms_producttime_beside_ns(
               device, ms_producttime_tiles_ns(device, shape, &kernel), bytes);
}

double ms_producttime_ns(const ms_device *device, ms_product_shape shape,
                         double flops_per_s, double bytes, ms_product_unit unit)
{
    return product_ns(device, shape, flops_per_s, bytes, unit, false);
}

double ms_producttime_implicit_ns(const ms_device *device,
                                  ms_product_shape shape, double flops_per_s,
                                  double bytes, ms_product_unit unit)
{
    return product_ns(device, shape, flops_per_s, bytes, unit, true);
}

/* ---- attention ----------------------------------------------------------- */

/* FLOPs of a query, a key and a channel. */
#define FORWARD 4.0
#define BACKWARD 10.0
/* Queries of a block. */
#define BLOCK 128.0
#define SMALL_BLOCK 64.0
#define NARROW 64.0
#define SUMS_BYTES 16.0
#define TURNED 0.62 /* ms_producttime_turned */
#define MIDDLE 96.0
#define WIDE 128.0

/* Keys that a block takes longer by, to begin and to end; what a kernel takes
 * beside a product's start; waves that blocks of unlike length, under a mask,
 * take more; how long a block takes whose multiprocessor has no other, of a
 * share of a full one's time.  The share of the peak at 64, 96, 192 and 256
 * channels, of that at 128, and in backward at 64 and 256; queries of a block
 * at up to 96 channels, and keys that it goes on by at up to 64 and 128
 * channels and at more; 0: of those, nothing is known. */
static const struct {
    double keys, back_keys, start_ns, uneven, alone;
    double of_64, of_96, of_192, of_256, back_64, back_256;
    double narrow_block, narrow_step, step, wide_step;
} kernels[MS_N_ATTENTION_CODES] = {
    [MS_FLASH_1] = {100, 100, 1000, 0.55, 1, 1, 1, 0.9, 0.8, 1, 0.8, BLOCK, 0,
                    0, 0},
    [MS_FLASH_2] = {85, 85, 0, 0.77, 0.7, 0.82, 1, 1, 1.03, 0.9, 0.88, BLOCK,
                    128, 64, 64},
    [MS_FLASH_3] = {285, 60, 4600, 0.36, 0.8, 0.78, 0.97, 1.15, 1.15, 0.78, 1,
                    192, 128, 128, 64},
    [MS_ATTENTION_EFFICIENT] = {60, 60, 1000, 0.55, 1, 0.77, 0.885, 0.9, 0.8,
                                0.77, 0.8, BLOCK, 0, 0, 0},
};
#define SMALL_SHARE 0.84

static double between(double x, double low, double high, double of_low,
                      double of_high)
{
    return of_low + (of_high - of_low) * (x - low) / (high - low);
}

static double of_head(ms_attention_code kernel, double head)
{
    double of_64 = kernels[kernel].of_64, of_96 = kernels[kernel].of_96;
    double of_192 = kernels[kernel].of_192, of_256 = kernels[kernel].of_256;
    if (head <= NARROW)
        return of_64 * head / NARROW;
    if (head <= MIDDLE)
        return between(head, NARROW, MIDDLE, of_64, of_96);
    if (head <= WIDE)
        return between(head, MIDDLE, WIDE, of_96, 1);
    return head <= 192 ? between(head, WIDE, 192, 1, of_192)
                       : between(fmin(head, 256), 192, 256, of_192, of_256);
}

static double of_head_backward(ms_attention_code kernel, double head)
{
    double back_64 = kernels[kernel].back_64;
    if (head <= NARROW)
        return back_64 * head / NARROW;
    if (head <= WIDE)
        return between(head, NARROW, WIDE, back_64, 1);
    return between(fmin(head, 256), WIDE, 256, 1, kernels[kernel].back_256);
}

/* Channels that are multiplied: kernels are made for 64, 96 and 128. */
static double padded(ms_attention_code kernel, double head)
{
    if (kernels[kernel].step <= 0 || head <= NARROW || head > WIDE)
        return head;
    return head <= MIDDLE ? MIDDLE : WIDE;
}

/* Queries of a block, in forward: multiprocessors with 100 KiB of shared memory
 * (8.6, 8.9) hold fewer of wide heads in FlashAttention 2
 * (flash_fwd_launch_template.h). */
static double block_of(const ms_device *device, ms_attention_code kernel,
                       bool backward, double head, bool causal)
{
    bool little =
        device->compute_capability > A100 && device->compute_capability < H100;
    if (backward)
        return BLOCK;
    if (kernel == MS_FLASH_2 && little &&
        ((causal && head > NARROW) || head > WIDE))
        return SMALL_BLOCK;
    return head <= MIDDLE ? kernels[kernel].narrow_block : BLOCK;
}

/* Of its rate that a small block reaches: causal ones are small, by as much as
 * the mask hides, so that time grows with the keys, and wide ones. */
static double of_small(double head, double causal)
{
    return head > WIDE ? SMALL_SHARE : 1 - (1 - SMALL_SHARE) * causal;
}

/* Keys that a block goes over and that its mask hides: half of the tile on the
 * mask's edge.  0 without a mask. */
static double hidden(ms_attention_code kernel, double head, double block,
                     double keys, double most)
{
    double step = kernels[kernel].step;
    if (head <= NARROW)
        step = kernels[kernel].narrow_step;
    else if (head > WIDE)
        step = kernels[kernel].wide_step;
    return step > 0 ? (block + step) / 2 * (most / keys - 1) : 0;
}

double ms_producttime_turned(const ms_device *device)
{
    return device->compute_capability == H100 ? TURNED : 1;
}

/* Before backward's kernel one multiplies output and gradient and sets the sums
 * of the queries' gradients, which are fp32, to zero; another casts these
 * behind it.  The shares of older chips, of figures of FlashAttention, have
 * these with the kernel. */
static double sums_ns(const ms_device *device, double elements)
{
    if (device->compute_capability < H100)
        return 0;
    return 2 * (double)device->kernel_ns +
           SUMS_BYTES * elements * NS /
               (device->hbm_bytes_per_s * device->memory.stream_share);
}

/* The last block of a causal mask sees twice as many keys as they do on
 * average. */
double ms_producttime_attention_ns(const ms_device *device,
                                   ms_attention_code kernel, bool backward,
                                   ms_attention_shape shape, double flops,
                                   double flops_per_s)
{
    double queries =
        flops / ((backward ? BACKWARD : FORWARD) * shape.head * shape.keys);
    double head = padded(kernel, shape.head);
    double most = fmax(shape.keys, fmin(shape.queries, 2 * shape.keys));
    double block = block_of(device, kernel, backward, head, most > shape.keys);
    double rate = flops_per_s / NS / (double)device->multiprocessors *
                  device->attention_share[kernel][backward] *
                  (backward ? of_head_backward : of_head)(kernel, head) *
                  (block < BLOCK ? of_small(head, most / shape.keys - 1) : 1);
    double key_ns = block * (backward ? BACKWARD : FORWARD) * head / rate;
    double blocks =
        queries / fmax(1, shape.queries) * fmax(1, ceil(shape.queries / block));
    double more =
        (backward ? kernels[kernel].back_keys : kernels[kernel].keys) +
        hidden(kernel, head, block, shape.keys, most);
    double waves = blocks / (double)device->multiprocessors;
    waves = most > shape.keys ? waves + kernels[kernel].uneven : ceil(waves);
    double ns = key_ns * fmax(waves * (shape.keys + more),
                              kernels[kernel].alone * (most + more));
    double beside_ns = backward ? sums_ns(device, queries * shape.head) : 0;
    return device->product.start_ns + kernels[kernel].start_ns + beside_ns +
           fmax(ns, ms_producttime_moved_ns(device, shape.bytes));
}
