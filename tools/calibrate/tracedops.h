/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_TRACEDOPS_H
#define MS_TOOLS_TRACEDOPS_H

/* What an op of a profiler's trace is, by its name, the shapes of its inputs
 * and the kernels that it launched.
 *
 * A worked example.  aten::addmm of "Input Dims" [[4096], [8192, 1024],
 * [1024, 4096], [], []] and types ["c10::BFloat16", ...] is a product of 8192 x
 * 1024 by 1024 x 4096 in 16 bits.  aten::gelu of [[8192, 4096]] reads and
 * writes 64 MiB each.  aten::_flash_attention_forward's "Concrete Inputs" say
 * whether it is causal.  Outputs are not in a trace: pointwise ops, norms and
 * softmax write as much as their largest input has, reductions next to nothing.
 */

#include "tools/calibrate/measured.h"
#include "tools/recordings/kineto.h"

/* What the names of an op's kernels tell. */
typedef enum ms_traced_code {
    MS_TRACED_ANY,
    MS_TRACED_FLASH_2,
    MS_TRACED_FLASH_3,
    MS_TRACED_EFFICIENT,
    MS_TRACED_CUDNN, /* its attention */
    MS_TRACED_TF32   /* a product of fp32 by tensor cores */
} ms_traced_code;
typedef struct ms_traced_hint {
    uint8_t code;  /* ms_traced_code */
    uint8_t width; /* bytes of an element; 0: it does not say */
} ms_traced_hint;
ms_traced_hint ms_tracedops_hint(ms_kineto_slice kernel);

/* name: of the op; without a shape *why says what is missing and is not NULL.
 * causal is taken for granted where the trace has no concrete inputs, and
 * *assumed set. */
ms_measured ms_tracedops_row(const char *name, const ms_kineto_event *op,
                             ms_traced_hint hint, const char **why,
                             bool *assumed);

#endif
