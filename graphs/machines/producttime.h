/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_PRODUCTTIME_H
#define MS_GRAPHS_PRODUCTTIME_H

/* How long a matrix product and an attention kernel take on a device.
 *
 * A product of m x k by k x n is made in tiles of its output, a wave of them at
 * a time, one on each multiprocessor; each tile goes through k in steps, and
 * takes `depth` steps more to begin and to end.  Where there are few tiles, k
 * is split and the parts are summed.  Beside it the operands are moved.  So the
 * share of the peak that is reached falls in teeth where a tile or a wave
 * begins, and the time never falls where m, n or k grows.
 *
 * A worked example, H100 SXM, 4096 x 4096 x 4096 in bf16: 1,024 tiles of
 * 128 x 128, 8 waves on 132 multiprocessors; 8 x 128 x 128 x (4096 + 154) x 2
 * FLOPs x 132 at 0.847 of 989 TFLOP/s are 176 us: 783 TFLOP/s.  A row more is a
 * row of tiles more, and still 8 waves.
 *
 * The parts are fitted (tests/truth/gemm_fit.py) on the forward products of
 * NVIDIA's aiconfigurator, on half of the shapes; a device without a
 * measurement has the parts below at the share that its large products reach.
 */

#include "graphs/device.h"

typedef struct ms_product_shape {
    double batch, m, n, k;
} ms_product_shape;

/* ns; bytes: that are moved beside it.  tensor: by tensor cores,
 * whose peak flops_per_s is; else it is what large products reach. */
double ms_producttime_ns(const ms_device *device, ms_product_shape shape,
                         double flops_per_s, double bytes, bool tensor);

/* Which kernel computes attention. */
typedef enum ms_attention_code {
    MS_FLASH_1,             /* Dao et al. 2022 */
    MS_FLASH_2,             /* Dao 2023 */
    MS_FLASH_3,             /* Shah et al. 2024 */
    MS_ATTENTION_EFFICIENT, /* xFormers' */
    MS_N_ATTENTION_CODES
} ms_attention_code;

/* ns of so many FLOPs at that peak, of forward or of backward; keys: that a
 * query sees, on average, head: channels of a head.  The share of the peak is
 * the device's for long sequences and 128 channels; it is less for short ones,
 * whose blocks are masked or not full, as the benchmarks of FlashAttention 1 to
 * 3 have it (flash-attention 0251105a, assets). */
double ms_producttime_attention_ns(const ms_device *device,
                                   ms_attention_code kernel, bool backward,
                                   double keys, double head, double flops,
                                   double flops_per_s);

#endif
