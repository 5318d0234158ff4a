/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_CONVOLUTIONTIME_H
#define MS_GRAPHS_CONVOLUTIONTIME_H

/* How long a convolution takes on a device, forward and its two gradients, by
 * the fastest of the ways that cuDNN has.
 *
 * An implicit product is positions by the channels that they get, over the
 * filter's taps and the channels that they read; its operand is gathered while
 * it multiplies.  What makes it other than a product (producttime.h):
 *
 * - in 16 bits, channels outside, each tap has whole steps of 32 channels, so
 *   that a first layer of 3 channels multiplies 32, and of a weight's gradient
 *   each tap has tiles of its own; channels innermost it has steps of 8;
 * - the gradient of the input does not split k, so that 7 x 7 images leave most
 *   multiprocessors idle; its tile is 64 channels wide where there are no more.
 *   With a stride, each of the positions between has taps of its own: as many
 *   kernels, and the image is written in pieces of a sector;
 * - a filter that reads fewer rows than it strides over reads fewer bytes;
 * - layouts of the weight are made anew, and its gradient is summed from parts.
 *
 * In fp32, 3 x 3 of stride 1 are Winograd's, too (Lavin and Gray 2016): in one
 * kernel F(2 x 2, 3 x 3), 2.25 times fewer FLOPs, or F(4 x 4, 3 x 3) as 36
 * products, 4 times fewer, whose operands are written and read: 36 values for
 * 16 positions.  These go on by 16 images and by whole tiles of 4 x 4.
 *
 * A worked example, V100, a gradient of 7 x 7 images, 8 of them, 256 of 512
 * channels, 3 x 3, in 16 bits: 392 x 256 are 4 x 2 tiles of 128 x 128 on 80
 * multiprocessors, one wave of 9 x 512 elements of k and 92 more: 128 x 128 x
 * 4700 x 2 FLOPs at 0.777 of 1.56 TFLOP/s are 127 us for 0.92 GFLOP; DeepBench
 * measured 134 us, and 28 us forward, where k is split.
 *
 * All of this is fitted on half of the shapes that DeepBench measured on V100
 * and T4 (cuDNN 7.6; tests/truth/convolution_fit.py), with the same numbers for
 * both but for three of Turing's gradients in 16 bits and, in fp32, their share
 * of what products reach: a T4's are held back by its power, convolutions less.
 * The other half holds it (tests/truth/convolutions.tsv).  Of the fp16 rows the
 * forward is one algorithm, not the fastest (IMPLICIT_PRECOMP_GEMM), of the
 * fp32 rows what cuDNN's heuristics picked.
 *
 * cuDNN 7.6 has kernels for tensor cores that read channels outside.  Steps of
 * whole nets go as if there were none, and what is read and written is laid out
 * anew, on Ampere by timm's runs in both layouts, on a V100 by Lambda's.
 * Groups of 4, 8, 16 and 32 channels share tiles; of other widths, channels
 * innermost, they go without tensor cores (pytorch issue 70954; the rate is
 * fitted on RegNetY of times.tsv's half for fits). */

#include "graphs/machines/times/producttime.h"

typedef enum ms_convolution_pass {
    MS_CONVOLUTION_FORWARD,
    MS_CONVOLUTION_INPUT, /* the gradient of what it reads */
    MS_CONVOLUTION_WEIGHT,
    MS_N_CONVOLUTION_PASSES
} ms_convolution_pass;

typedef struct ms_convolution {
    ms_product_shape product; /* implicit: groups, positions, channels; of the
                                 weight channels by what each reads */
    ms_convolution_pass pass;
    double taps;       /* of a filter: 9 of 3 x 3 */
    double stride;     /* in each dimension */
    double side;       /* of an image of outputs */
    bool is_innermost; /* channels lie so (channels_last) */
    bool is_turned;    /* they do not, and are made to for tensor cores */
    bool is_three;     /* 3 x 3, one group, stride 1, channels not innermost */
} ms_convolution;

/* ns.  flops_per_s: the peak of tensor cores, of others what large products
 * reach.  bytes: of its tensors, each once. */
double ms_convolutiontime_ns(const ms_device *device,
                             const ms_convolution *convolution,
                             double flops_per_s, double bytes,
                             ms_product_unit unit);

#endif
