/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_EXPERTEACH_H
#define MS_GRAPHS_EXPERTEACH_H

/* Private to graphs/layers/experts: experts with linear layers of their own,
 * each of which has its rows apart (Megatron-LM d98e8a64,
 * core/transformer/moe/experts.py, SequentialMLP, which it takes without
 * moe_grouped_gemm): torch.split of the permuted rows and probabilities, an MLP
 * each, torch.cat of their outputs. */

#include "graphs/trace/trace.h"

typedef struct ms_experteach {
    int64_t experts, hidden; /* of this rank */
    bool gated, biased;
} ms_experteach;
/* x [rows, width], sorted by experts; probabilities [rows] or MS_NONE.  Routing
 * is even: the first experts have the rows that remain, one each. */
uint32_t ms_experteach_run(ms_trace *trace, const ms_experteach *how,
                           uint32_t x, uint32_t probabilities);

#endif
