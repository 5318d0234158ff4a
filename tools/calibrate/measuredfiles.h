/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_MEASUREDFILES_H
#define MS_TOOLS_MEASUREDFILES_H

/* Measurements that lie in a file as such.
 *
 * A CSV has a line of headings, in any order, then a row a sample:
 *
 *     op,batch,m,n,k,dtype,us
 *     gemm,1,4096,4096,4096,bf16,182.0
 *     norm,,,,,,13.5             needs the column bytes
 *
 * op: gemm, a word of ms_measured_words, or an op of PyTorch ("aten::gelu");
 * heads, queries, keys, channels, causal, pass: of attention; ranks: of
 * all-reduces; the time as us, ms or ns, or as tflops or gbps.  "#" begins a
 * comment.
 *
 * A table of SimuMax (MooreThreads/SimuMax 4dcaae51, configs/system) has by op
 * the share of the peak that each shape reached: of a matmul 2 m n k, of
 * attention all keys, also the masked half (simu_tools/efficency_test).
 *
 * Faults: MS_EINPUT with the line. */

#include "tools/calibrate/measured.h"

/* csvrows.c, simumax.c: bytes end with a NUL and must outlive the rows. */
ms_err ms_csvrows_read(const char *name, char *bytes, size_t length,
                       ms_measurements *all, ms_fault *fault);
ms_err ms_simumax_read(const char *name, const char *bytes, size_t length,
                       ms_measurements *all, ms_fault *fault);

#endif
