/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_USERBUFFERS_H
#define MS_GRAPHS_USERBUFFERS_H

/* Private to graphs/: what ranks that split a layer exchange in pieces, beside
 * the pieces of its products (tensor:T,sp,overlap; Megatron's tp_comm_overlap:
 * TransformerEngine@d0067d0d, pytorch/module/base.py, initialize_ub; common/
 * comm_gemm_overlap).
 *
 * Each exchange has a buffer of its own, as large as all tokens of a
 * micro-batch are [n, h], for the whole run and outside the framework's pool:
 * 12 of them (qkv and fc1: forward, and backward's gather and scatter; proj and
 * fc2: forward, backward, and the gathered gradient for the weight's).  What
 * lies in one takes nothing of the pool.
 *
 *     forward   columns  ring exchange: each rank multiplies its own piece of T
 *                        while the next one comes
 *               rows     pipeline: a piece of four is scattered while the next
 *                        one is multiplied
 *     backward  rows     ring exchange of the gradient
 *               columns  bulk: one gather beside the product by the weight, one
 *                        scatter beside the weight's gradient, as without
 *
 * With g ns for a piece's product and s for its exchange a ring takes
 * max(T g, (T - 1) s + g), a pipeline g + max(3 g, 3 s) + s.  Each is told in
 * two products: those pieces that wait for nothing, and the rest. */

#include "graphs/trace/tensors.h"

#include <stdbool.h>
#include <stdint.h>

#define MS_USERBUFFERS UINT64_C(12)
#define MS_USERBUFFERS_PIECES 4u /* of a pipeline (num_splits) */

/* torch's kernels exchange otherwise (async tensor parallel; PyTorch,
 * torch/distributed/_symmetric_memory/__init__.py, compiled by torch/_inductor/
 * fx_passes/micro_pipeline_tp.py; torchtitan's enable_async_tensor_parallel).
 * Forward and backward gather what products read, of which each rank has put
 * its part where the others fetch it, and begin with that part; products whose
 * sum is scattered are fetched piece by piece, T of them, and summed by a
 * kernel.  What goes through is one workspace, outside the pool, as large as
 * the largest exchange: a part, or two of a sum.  Nothing is copied into
 * another order.  Only what an aten::mm makes or reads goes so: a sum of
 * several products' gradients does not, nor what a bias is added to. */

/* MS_EUSAGE for settings that are not known beside it. */
ms_err ms_userbuffers_check(const ms_trace *trace);
/* Does the layer that runs now exchange so?  in_buffer: it gathers into
 * Megatron's own. */
bool ms_userbuffers_used(const ms_trace *trace, bool in_buffer);
/* Do exchanges go as PyTorch's do? */
bool ms_userbuffers_async(const ms_trace *trace);
/* n tensors like part go through the workspace; one: part lies there. */
void ms_userbuffers_share(ms_trace *trace, uint32_t part, uint32_t n);
/* The tensor lies in a buffer. */
void ms_userbuffers_hold(ms_trace *trace, uint32_t tensor);

/* The product that has just ended, of x by the weight, which made y, is that of
 * `now` of `all` pieces of rows.  from: it reads them of this tensor, not of x;
 * MS_NONE: of x. */
void ms_userbuffers_first(ms_trace *trace, uint32_t from, uint32_t now,
                          uint32_t all);
/* The product of the other pieces, into a tensor that is there (y) or, y
 * MS_NONE, one like `like` in a buffer. */
uint32_t ms_userbuffers_rest(ms_trace *trace, uint32_t x, uint32_t weight,
                             uint32_t y, uint32_t like, uint32_t now,
                             uint32_t all, double flops);

#endif
