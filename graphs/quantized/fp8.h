/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_FP8_H
#define MS_GRAPHS_FP8_H

/* Private to graphs/: products of linear layers in 8-bit floating point, as
 * Transformer Engine has them (NVIDIA/TransformerEngine,
 * transformer_engine/pytorch/module/linear.py; docs/features/
 * low_precision_training/performance_considerations) and MS-AMP (Azure/MS-AMP,
 * msamp/nn/functional.py).  Norms, attention and the head stay as they are.
 *
 * The three products of a layer read each operand by rows or by columns:
 *
 *     output = input weight^T          rows of the input, rows of the weight
 *     its gradient by the input        rows of the gradient, columns of weight
 *     by the weight                    columns of the gradient and of the input
 *
 * Blackwell's per-tensor products read either from one tensor; before it, and
 * where blocks share a scale, columns are a tensor of their own.  So with one
 * scale per tensor on Hopper a linear layer [1024, 1024] that reads [1024,
 * 1024] makes 2 MiB of the input in forward and keeps 1 MiB of it (columns, TE;
 * rows, MS-AMP), and 2 MiB of its weight until backward, however long
 * fp8.weights says.
 *
 * fp8.recipe: what has a scale of its own: a tensor (delayed: from the maxima
 * of 1024 steps before; current: from its own, found first), 128 elements or,
 * of weights, 128 x 128 (block), 32 elements (mxfp8). */

#include "graphs/parallel/shards.h"
#include "graphs/trace/stepsettings.h"

typedef struct ms_trace ms_trace; /* trace.h */

/* MS_EUSAGE where the device or another setting has no such products. */
ms_err ms_fp8_check(ms_trace *trace);
/* The forward is there: was there a product?  MS_EUSAGE. */
ms_err ms_fp8_close(const ms_trace *trace);
/* Does the layer multiply in fp8? */
bool ms_fp8_takes(const ms_trace *trace, const ms_layer *layer);
/* x [..., in], weight [out, in], bias [out] or MS_NONE.  Ranks that split the
 * layer by columns gather x, a part of the sequence, as it is quantized, and
 * again in backward from what was saved of it; the gradient is scattered, or
 * summed where x was whole.  By rows the result is, and its gradient gathered
 * as it is quantized (TransformerEngine@d0067d0d, pytorch/module/linear.py;
 * pytorch/distributed.py, gather_along_first_dim). */
uint32_t ms_fp8_linear(ms_trace *trace, const ms_layer *layer, uint32_t x,
                       uint32_t weight, uint32_t bias, ms_split split);
/* Does ms_experts_product?  x [rows, in], weight [experts, out, in]. */
bool ms_fp8_takes_experts(const ms_step_settings *settings);
uint32_t ms_fp8_experts(ms_trace *trace, const ms_layer *layer, uint32_t x,
                        uint32_t weight);

#endif
