/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_EXPERTOPS_H
#define MS_GRAPHS_EXPERTOPS_H

/* Private to graphs/: the collectives of ranks that divide the experts of a
 * layer (expert:E), and of those that split each of them (etp), as ops of the
 * graph with their autograd nodes (Megatron-LM, core/transformer/moe/
 * token_dispatcher.py, MoEAlltoAllTokenDispatcher).
 *
 * Nouns.  A row is a token on its way to one of its experts.  Each rank sends
 * rows to all, and receives those of its own experts: as many, where routing is
 * even; the fullest rank receives `imbalance` times as many, or with a capacity
 * as many as that says.  Ranks that split an expert need the rows of each
 * other, and each has a part of the sum:
 *
 *     exchange   all-to-all             all-to-all, the other way
 *     gather     all-gather             reduce-scatter
 *     scatter    reduce-scatter         all-gather
 *
 * A group of one rank exchanges nothing: the tensor itself goes on.
 *
 * One token by hand: 8 experts, 2 of a token, on expert:4, so that rank 0 has
 * experts 0 and 1.  A token of rank 0 goes to experts 1 and 6: two rows of
 * [width], one of which rank 3 receives; rank 0 keeps the other, and receives
 * the rows that others have for 0 and 1, rank after rank, which a copy sorts by
 * expert.  What comes back is in the order in which it was sent, and the
 * token's two rows are added.  Of T tokens a rank 2 T rows are sent and, on
 * average, 2 T received, 3 of 4 over links: 2 T x 2 width x 3 / 4 bytes. */

#include "sim/base/base.h"
#include "sim/group.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct ms_trace ms_trace; /* trace.h */

typedef struct ms_expert_ranks {
    ms_group across, within; /* that divide experts; that split each of them */
    uint8_t within_role;     /* ms_group_role: without a grid of the experts'
                                own, the ranks that split layers */
    bool deep;               /* DeepEP's buffers, not NCCL's all-to-alls */
    double capacity;         /* 0: as the layer says */
    double imbalance;
} ms_expert_ranks;

/* Opens trace->experts; NULL where a rank has all of all experts.  MS_EUSAGE
 * where settings, or MS_EINPUT where the model, are not known beside it. */
ms_err ms_expertops_open(ms_trace *trace);

/* Do ranks divide the experts, or split them? */
bool ms_expertops_divides(const ms_trace *trace);
/* Are the parameters made from now on parts, of which each rank has one? */
void ms_expertops_make_parts(ms_trace *trace, bool parts);

/* Rows [rows, width] of a tensor to the ranks of their experts, or back: so
 * many are received. */
uint32_t ms_expertops_exchange(ms_trace *trace, uint32_t x, int64_t received);
uint32_t ms_expertops_gather(ms_trace *trace, uint32_t x);
uint32_t ms_expertops_scatter(ms_trace *trace, uint32_t y);

#endif
