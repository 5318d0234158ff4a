/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_PRODUCTTIME_H
#define MS_GRAPHS_PRODUCTTIME_H

/* How long a matrix product and an attention kernel take on a device.
 *
 * A product of m x k by k x n is made in tiles of its output, a wave of them at
 * a time, one on each multiprocessor; each tile goes through k in steps, and
 * takes as long as `depth` elements of k more to begin and to end.  That is a
 * latency, so in fp32, which takes longer over k, it is fewer elements: the
 * median of NeuSight's batched products in fp32 is 26 to 97 % off without that,
 * and 10 to 20 % with it, 4 to 7 % on V100 and A100 by the tiles that cuBLAS
 * has for them.  Where there are few tiles, k is split and the parts are
 * summed, in the cache, if they fit. Beside it the operands are moved.  So the
 * share of the peak that is reached falls in teeth where a tile or a wave
 * begins, and the time never falls where m, n or k grows.
 *
 * A worked example, H100 SXM, 4096 x 4096 x 4096 in bf16: 1,024 tiles of
 * 128 x 128, 8 waves on 132 multiprocessors; 8 x 128 x 128 x (4096 + 154) x 2
 * FLOPs x 132 at 0.847 of 989 TFLOP/s are 176 us: 783 TFLOP/s.  A row more is a
 * row of tiles more, and still 8 waves.
 *
 * The parts are fitted (tests/truth/gemm_fit.py) on the forward products of
 * NVIDIA's aiconfigurator, on half of the shapes, and so are those in fp8,
 * whose tiles reach the same share and begin and end as slowly (397 elements of
 * k on an H100, for 154 in 16 bits), and grouped products, which reach 0.7 of
 * others' rates (products_fit.py); a device without a measurement has the parts
 * below at the share that its large products reach.
 */

#include "graphs/device.h"

typedef struct ms_product_shape {
    double batch, m, n, k;
} ms_product_shape;

/* Which units multiply. */
typedef enum ms_product_unit {
    MS_UNIT_PLAIN,
    MS_UNIT_TENSOR, /* tensor cores, in 16 bits or tf32 */
    MS_UNIT_FP8     /* the same in fp8 */
} ms_product_unit;

/* ns; bytes: that are moved beside it.  flops_per_s: the peak of tensor cores,
 * of others what large products reach. */
double ms_producttime_ns(const ms_device *device, ms_product_shape shape,
                         double flops_per_s, double bytes,
                         ms_product_unit unit);

/* The same of a convolution, whose parts of k are at most 8, in 16 bits, and
 * are summed in memory: nets in 16 bits of times.tsv's half for fits are 2 %
 * too fast if they are a product's, MobileNets up to 15 %. */
double ms_producttime_implicit_ns(const ms_device *device,
                                  ms_product_shape shape, double flops_per_s,
                                  double bytes, ms_product_unit unit);

/* ---- what other kernels that multiply are made of ------------------------ */

/* Sides of a tile, and the share of flops_per_s that it reaches; 0: none such.
 */
typedef struct ms_product_tile {
    double rows, columns, share;
} ms_product_tile;

typedef struct ms_product_kernel {
    const ms_product_tile *tiles;
    uint32_t n_tiles;
    double flops_per_s;
    double depth;   /* in elements of k: that a tile takes more */
    double step;    /* of k, that it goes on by */
    double parts;   /* of k, at most: a power of 2 */
    bool by_memory; /* parts are summed there; else in the cache, if they fit */
} ms_product_kernel;

/* The fastest of its tiles and parts, without what is moved beside. */
double ms_producttime_tiles_ns(const ms_device *device, ms_product_shape shape,
                               const ms_product_kernel *kernel);
/* That and so many bytes, which are moved beside it. */
double ms_producttime_beside_ns(const ms_device *device, double ns,
                                double bytes);
double ms_producttime_moved_ns(const ms_device *device, double bytes);
double ms_producttime_depth(const ms_device *device, double flops_per_s,
                            ms_product_unit unit);

/* Of the rate of a product in tf32 both of whose operands lie along the output,
 * not along k, as those of a weight's gradient do: Hopper's tensor cores read
 * 16-bit operands in either order, tf32 along k alone (PTX ISA,
 * wgmma.mma_async: the operands' transposition is of .f16 and .bf16 types), so
 * that its products are those of older ones.  Fitted on half of
 * h100kernels.tsv. */
double ms_producttime_turned(const ms_device *device);

/* Which kernel computes attention. */
typedef enum ms_attention_code {
    MS_FLASH_1,             /* Dao et al. 2022 */
    MS_FLASH_2,             /* Dao 2023 */
    MS_FLASH_3,             /* Shah et al. 2024 */
    MS_ATTENTION_EFFICIENT, /* xFormers' */
    MS_N_ATTENTION_CODES
} ms_attention_code;

/* Queries of a sequence, keys that one sees on average, channels of a head;
 * what is read and written meanwhile, 0 if that is not told. */
typedef struct ms_attention_shape {
    double queries, keys, head, bytes;
} ms_attention_shape;

/* ns of so many FLOPs at that peak, of forward or of backward.  A block has 128
 * queries of a head (192 of a narrow one in FlashAttention 3, 64 on
 * multiprocessors with little shared memory) and goes over the keys, some more
 * of which it takes to begin and to end, and half of a tile on the edge of a
 * mask.  Heads of 65 to 128 channels take as long as those of 96 and of 128.
 * The share of the peak is the device's for many long blocks and 128 channels.
 * Without a mask blocks are alike and go in whole waves; under one, few blocks
 * leave multiprocessors idle, and none ends before the one that sees the most
 * keys.  Many short sequences take as long as their bytes.  The parts are
 * fitted on half of the shapes of vLLM's attention in aiconfigurator, causal
 * and not (A100, L40S; H100, H200; tests/truth/attention_fit.py), those of
 * FlashAttention 1, of xFormers and of backward on the benchmarks of
 * FlashAttention (flash-attention 0251105a, assets). */
double ms_producttime_attention_ns(const ms_device *device,
                                   ms_attention_code kernel, bool backward,
                                   ms_attention_shape shape, double flops,
                                   double flops_per_s);

#endif
