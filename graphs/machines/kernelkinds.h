/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_KERNELKINDS_H
#define MS_GRAPHS_KERNELKINDS_H

/* Kernels that move bytes, by kind: each kind may have a curve of its own in a
 * device's file ("memory_curves"), which says at what rate so many bytes go.
 *
 *     ms_kernelkinds_of("aten::gelu_backward")      MS_MEMORY_POINTWISE
 *     ms_kernelkinds_of("aten::_foreach_mul_")      MS_MEMORY_OPTIMIZER
 *     ms_kernelkinds_of("aten::mm")                 MS_NONE: no such kernel */

#include "sim/base/base.h"

typedef enum ms_memory_kind {
    MS_MEMORY_POINTWISE,
    MS_MEMORY_NORM,
    MS_MEMORY_SOFTMAX,
    MS_MEMORY_REDUCTION,
    MS_MEMORY_LOOKUP,
    MS_MEMORY_OPTIMIZER,
    MS_MEMORY_COPY, /* within the device: casts, fills, concatenation */
    MS_N_MEMORY_KINDS
} ms_memory_kind;

/* Their words in a device's file. */
extern const char *const ms_kernelkinds_words[MS_N_MEMORY_KINDS];

/* The kind of an op by the name that PyTorch and memsim give it, in place or
 * not; MS_NONE: it is none of these, or not known. */
uint32_t ms_kernelkinds_of(const char *op);

#endif
