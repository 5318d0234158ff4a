/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_KERNELTIME_H
#define MS_GRAPHS_KERNELTIME_H

/* How long kernels take of which the file of a device may have curves by kind,
 * and products whose shape is not told: the longer of their FLOPs at the rate
 * that an op of their size reaches and of their bytes at the curve's rate, or,
 * where the file has none, at that of a stream (memorytime.h), plus the gap
 * between two kernels.
 *
 * A worked example, H100 SXM, 64 MiB read and written by a GELU where the curve
 * says 2,800 GB/s: 24 us, and 1.3 us between two kernels.
 *
 * The shape of the products' curve is Calculon's (calculon-ai/calculon,
 * systems/a100_80g.json: matrix efficiency by GFLOP 0.1 / 0.6 / 0.9 / 0.95 at
 * <1 / 1 / 16 / 128), interpolated so that time grows without steps. */

#include "graphs/device.h"

/* Bytes of a kernel of that kind; MS_NONE: of none that has curves.  Time never
 * falls where bytes grow. */
double ms_kerneltime_bytes_s(const ms_device *device, uint32_t kind,
                             double bytes);
/* A kernel that computes beside, at fp32's rate. */
double ms_kerneltime_plain_ns(const ms_device *device, uint32_t kind,
                              double flops, double bytes);
/* One that multiplies, of a shape that is not told; flops_per_s: what large
 * products reach. */
double ms_kerneltime_matrix_ns(const ms_device *device, double flops_per_s,
                               double flops, double bytes);

#endif
