/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_RANKORDER_H
#define MS_GRAPHS_RANKORDER_H

/* Who lies next to whom: the ranks of a job as a grid (Megatron-LM@d98e8a64,
 * core/parallel_state.py, RankGenerator).
 *
 * Nouns.  A dimension is a way to divide work: tensor, context, expert, data,
 * pipeline.  An order names them, the one whose ranks are next to each other
 * first; the stride of a dimension is the product of those named before it.
 * Experts have a grid of their own over the same ranks, in the same order:
 * expert-tensor, expert, expert-data, pipeline.  Ranks of data and context
 * together divide states: they are counted along the one of the two that is
 * named first.
 *
 * A worked example: 32 ranks, tensor:2, context:2, pipeline:2, so data 4.
 *
 *     order              tensor context data pipeline
 *     tp-cp-dp-pp             1       2    4       16
 *     tp-pp-cp-dp             1       4    8        2
 *     pp-dp-tp-cp             8      16    2        1   data and context: ranks
 *                                                       0 2 4 6 16 18 20 22 */

#include "sim/base/base.h"
#include "sim/shape.h"

typedef struct ms_rankorder {
    uint32_t stride[MS_N_RANK_DIMS]; /* by ms_rank_dim; experts: below */
    uint32_t expert_tensor, expert, expert_data;
    uint32_t first, second; /* the sizes of data and context, in order, and */
    uint32_t first_stride, second_stride;
    bool even; /* these two are one progression */
} ms_rankorder;

void ms_rankorder_find(const ms_shape *shape, ms_rankorder *order);
/* The rank that is the index-th of data and context together. */
uint64_t ms_rankorder_rank(const ms_rankorder *order, uint64_t index);
/* MS_EUSAGE: an order names not all that there are several ranks of, or gives
 * experts other data ranks than the rest has within a stage. */
ms_err ms_rankorder_check(const ms_shape *shape, ms_fault *fault);

#endif
