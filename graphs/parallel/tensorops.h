/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_TENSOROPS_H
#define MS_GRAPHS_TENSOROPS_H

/* Private to graphs/: the collectives of ranks that split the layers of one
 * model, as ops of the graph with their autograd nodes.
 *
 * Nouns.  The ranks (ms_shape.tensor_ranks) have the same samples.  A tensor is
 * whole on each of them, or divided: along the sequence, or along its last
 * dimension.  What a rank computes of a product that divides the sum is a
 * partial result, and becomes one by a sum over the ranks.  Each function is a
 * pair: what forward does, and what backward does with the gradient
 * (Korthikanti et al. 2022, figure 5; Megatron-LM@d98e8a64,
 * core/tensor_parallel/mappings.py):
 *
 *     enter      nothing                  all-reduce, in place
 *     reduce     all-reduce, in place     nothing
 *     gather     all-gather               reduce-scatter, or this rank's part
 *     scatter    reduce-scatter           all-gather
 *     part       this rank's part         all-gather
 *     columns    all-gather               reduce-scatter, or this rank's part
 *
 * gather, scatter and part are along the sequence, dimension 1.  torch's
 * functional collectives go along dimension 0: where a kernel set is torch's,
 * what comes or goes is a copy in its order (torch/distributed/
 * _functional_collectives.py, all_gather_tensor, reduce_scatter_tensor).
 *
 * A worked example: x [2, 1024, 512] of 16 bits, whole, on 4 ranks.
 *
 *     part(x)     a view of [2, 256, 512]; its gradient is gathered: 2 MiB
 *     gather(.)   [2, 1024, 512] again: 2 MiB, of which 0.5 MiB were here */

#include "sim/group.h"
#include "sim/replay/collective.h"

typedef struct ms_trace ms_trace; /* trace.h */

/* Nothing is divided among a rank alone. */
uint32_t ms_tensorops_enter(ms_trace *trace, uint32_t x);
uint32_t ms_tensorops_reduce(ms_trace *trace, uint32_t x);
/* What ranks read it for gives all the same gradient. */
uint32_t ms_tensorops_gather(ms_trace *trace, uint32_t x);
/* Each gets a part of the gradient's sum.  columns: of the products, this
 * rank's, that read it alone and add no bias, or 0: with torch's kernels and
 * tensor:T,sp,overlap it comes beside them (userbuffers.h). */
uint32_t ms_tensorops_gather_for(ms_trace *trace, uint32_t x, uint32_t columns);
uint32_t ms_tensorops_scatter(ms_trace *trace, uint32_t x);
uint32_t ms_tensorops_part(ms_trace *trace, uint32_t x);

/* Parts of the columns, the last dimension, become all of them (mappings.py,
 * all_gather_last_dim_from_tensor_parallel_region): gathered rank by rank, then
 * put side by side in a copy; the gradient goes the same way back, or, where it
 * is equal on all ranks, this rank's part of it is copied (torch's DTensor). */
uint32_t ms_tensorops_columns(ms_trace *trace, uint32_t x, bool partial);

/* This rank's heads of a bias [1, heads, queries, keys]; their gradients are
 * gathered (Megatron-LM@d98e8a64, core/models/T5/t5_model.py, which scatters
 * the bias of all heads). */
uint32_t ms_tensorops_heads(ms_trace *trace, uint32_t x);

/* The same without a node, for rules that run them: an all-reduce in place, and
 * new tensors. */
void ms_tensorops_sum(ms_trace *trace, uint32_t x);
uint32_t ms_tensorops_whole_of(ms_trace *trace, uint32_t part);
uint32_t ms_tensorops_part_of_sum(ms_trace *trace, uint32_t x);
/* Of x pieces `now` of `all`, then the others, into a part that is there. */
uint32_t ms_tensorops_first_of_sum(ms_trace *trace, uint32_t x, uint32_t now,
                                   uint32_t all);
void ms_tensorops_rest_of_sum(ms_trace *trace, uint32_t x, uint32_t part,
                              uint32_t now, uint32_t all);
/* In Megatron's buffer (memorybuffer.h). */
uint32_t ms_tensorops_whole_in_buffer(ms_trace *trace, uint32_t part);

#endif
