/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_MEMORYBUFFER_H
#define MS_GRAPHS_MEMORYBUFFER_H

/* Private to graphs/: the one buffer "mpu" of a process, per dtype, that
 * Megatron's own layers gather into and make scores in
 * (Megatron-LM@d98e8a64, core/utils.py, GlobalMemoryBuffer).  It is as large as
 * the largest tensor that was asked of it, and lasts. */

#include "graphs/trace/tensors.h"

/* Its first elements, seen with these sizes: a reference. */
uint32_t ms_memorybuffer_take(ms_trace *trace, uint8_t dtype, uint32_t n_dims,
                              const int64_t *dims);

#endif
