/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_KERNELTIME_H
#define MS_GRAPHS_KERNELTIME_H

/* How long kernels take that are neither products nor attention
 * (producttime.h): on a roofline.  They take the longer of their FLOPs at the
 * rate that an op of their size reaches and their bytes at the rate that
 * transfers of their size reach, plus the gap between two kernels.
 *
 * A worked example, H100 SXM, 64 MiB read and written by a GELU: 0.84 of 3,350
 * GB/s, 24 us, and 1.5 us between two kernels.
 *
 * The shapes of the two curves are Calculon's (calculon-ai/calculon,
 * systems/a100_80g.json: matrix efficiency by GFLOP 0.1 / 0.6 / 0.9 / 0.95 at
 * <1 / 1 / 16 / 128, memory by MB 0.3 / 0.6 / 0.75 / 0.9 at <1 / 1 / 10 / 100),
 * interpolated so that time grows without steps.  Where the device's file has a
 * curve of the kernel's kind, that decides. */

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
