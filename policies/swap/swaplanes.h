/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_SWAPLANES_H
#define MS_POLICIES_SWAPLANES_H

/* Private to the swap files: the two lanes of the link, one copy at a time in
 * each direction, as a plan fills them (Capuchin, Peng et al.,
 * ASPLOS 2020).  Copies out run as their tensors are used last,
 * copies in as late as those behind them and their own use allow.  By hand,
 * copies of 4, a used at 0 and 18, b at 2 and 16:
 *
 *     time       0   2   4   6   8  10  12  14  16  18
 *     lane out   [ a    ][ b    ]
 *     lane in                        [ b    ][ a    ]
 *
 * b is free for 10 - 8 = 2; without the queue it would be for 12 - 6 = 6.
 * What a copy out exceeds the first call that is too high by, or a copy in the
 * last, is late: everything from there on shifts by it. */

#include "policies/common/copyqueue.h"
#include "policies/common/estimates.h"
#include "policies/swap/swapplan.h"

typedef struct ms_swaplanes {
    /* Per tensor that moves: the calls between which it has to be away. */
    uint32_t *first_call, *last_call;
    ms_copyqueue out, in; /* places: by_out, by_back */
    /* What is waited or recomputed before a call: sums of a Fenwick tree over
     * the calls. */
    uint64_t *shift_ns;
    uint64_t longest_in_ns; /* of all copies in */
    ms_estimates estimates; /* of the tensors that are here */
} ms_swaplanes;

typedef struct ms_swaplanes_fit {
    int64_t free_ns; /* swapped out until it is swapped in */
    uint64_t late_out_ns, late_in_ns;
} ms_swaplanes_fit;

ms_err ms_swaplanes_open(ms_swapplan *plan);
/* No copies, nothing is late. */
void ms_swaplanes_begin(ms_swapplan *plan);
/* As they would be with this tensor, which is idle in a call that is too high.
 * leaf (optional): learns it. */
ms_swaplanes_fit ms_swaplanes_try(const ms_swapplan *plan, uint32_t tensor,
                                  uint32_t call, ms_estimates_node *leaf);
/* The least that one of the tensors below a node is late, the longest that one
 * is free. */
int64_t ms_swaplanes_least_late(const ms_swapplan *plan,
                                const ms_estimates_node *node);
int64_t ms_swaplanes_most_free(const ms_swapplan *plan,
                               const ms_estimates_node *node);
/* It leaves; what is late of it shifts what comes. */
void ms_swaplanes_move(ms_swapplan *plan, uint32_t tensor, uint32_t call);
/* It is made again in so many nanoseconds. */
void ms_swaplanes_remake(ms_swapplan *plan, uint32_t tensor, uint64_t ns);
/* It was picked: it is here no more, and levels are lower. */
void ms_swaplanes_picked(ms_swapplan *plan, uint32_t tensor);
/* It is needed earlier; its place in by_back was one of those from at_back to
 * before end. */
void ms_swaplanes_needed(ms_swapplan *plan, uint32_t tensor, uint32_t end);

#endif
