/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_TEWORKSPACE_H
#define MS_GRAPHS_TEWORKSPACE_H

/* Private to graphs/: what Transformer Engine holds whatever it computes. */

#include "graphs/trace/trace.h"

/* The open op is one of its products: its workspace is there from now on, 4
 * MiB, from Hopper on 32 MiB and 1 KiB (cpp_extensions/gemm.py,
 * get_cublas_workspace_size_bytes). */
void ms_teworkspace_hold(ms_trace *trace);

#endif
