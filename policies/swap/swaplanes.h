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
#include "policies/swap/swapplan.h"

typedef struct ms_swaplanes {
    /* Per tensor that moves: the calls between which it has to be away. */
    uint32_t *first_call, *last_call;
    ms_copyqueue out, in; /* places: by_out, by_back */
    /* What is waited or recomputed before a call: sums of a Fenwick tree over
     * the calls. */
    uint64_t *shift_ns;
} ms_swaplanes;

/* ---- kinds --------------------------------------------------------------- */

/* swapkinds.c: which of the tensors that are here is best in a call, without a
 * look at each.  Those whose copies take the same time are of one kind, each
 * kind a tree in the order of their ids, which is about that in which backward
 * needs them; a node knows between which calls, times and places in by_out its
 * tensors are.  From these a score tells how good the best of them can be at
 * most: only where that is better than what has been found the search goes on.
 * A model that repeats its layers has few kinds. */

/* Of the tensors below it; none: last_need_call is 0.  Of a leaf the first and
 * the last are the same. */
typedef struct ms_swapkinds_node {
    uint32_t least_id;
    uint32_t first_out, last_out; /* places in by_out */
    uint32_t first_out_call, last_out_call;
    uint32_t first_need_call, last_need_call;
    uint64_t first_need_ns, last_need_ns;
    /* At most from a last use to the next call, and from the beginning of the
     * call that needs it to that. */
    int64_t most_behind_ns, most_before_ns;
    double rate; /* the highest of what ms_swapkinds_rate set */
} ms_swapkinds_node;

typedef struct ms_swapkinds {
    uint32_t *leaf, *kind_of; /* per tensor: its node, of which kind */
    double *rate;             /* per tensor */
    /* Per kind: nodes[root + i] is node i; a tensor of it. */
    uint32_t *root, *n_leaves, *sample, n;
    ms_swapkinds_node *nodes;
} ms_swapkinds;

/* The best: of the highest score the first id.  MS_NONE: no tensor is idle in
 * the call, or none has a score. */
typedef struct ms_swapkinds_best {
    uint32_t tensor;
    double score;
} ms_swapkinds_best;

/* At most what a tensor below the node scores that is idle in the call; of a
 * leaf its tensor's very score; anything less than `least` where that is less.
 * tensor: one of the kind. */
typedef double (*ms_swapkinds_score)(ms_swapplan *plan,
                                     const ms_swapkinds_node *node,
                                     uint32_t tensor, uint32_t call,
                                     double least);

ms_err ms_swapkinds_open(ms_swapplan *plan);
/* Of a tensor that is here. */
ms_swapkinds_node ms_swapkinds_leaf(const ms_swapplan *plan, uint32_t tensor);
/* Its place, or what needs it, has changed. */
void ms_swapkinds_update(ms_swapplan *plan, uint32_t tensor);
void ms_swapkinds_update_all(ms_swapplan *plan);
void ms_swapkinds_rate(ms_swapplan *plan, uint32_t tensor, double rate);
/* Among those that score least or more. */
ms_swapkinds_best ms_swapkinds_find(ms_swapplan *plan, uint32_t call,
                                    ms_swapkinds_score score, double least);

/* ---- lanes --------------------------------------------------------------- */

typedef struct ms_swaplanes_fit {
    int64_t free_ns; /* swapped out until it is swapped in */
    uint64_t late_out_ns, late_in_ns;
} ms_swaplanes_fit;

ms_err ms_swaplanes_open(ms_swapplan *plan);
/* No copies, nothing is late. */
void ms_swaplanes_begin(ms_swapplan *plan);
/* As they would be with a tensor of the node, which is idle in a call that is
 * too high: of a leaf very so; else free at most, late at least.  like: a
 * tensor whose copies take as long.  What is late by more than most_ns is not
 * looked at further. */
ms_swaplanes_fit ms_swaplanes_try(const ms_swapplan *plan,
                                  const ms_swapkinds_node *node, uint32_t like,
                                  uint32_t call, int64_t most_ns);
/* It leaves; what is late of it shifts what comes. */
void ms_swaplanes_move(ms_swapplan *plan, uint32_t tensor, uint32_t call);
/* It is made again in so many nanoseconds. */
void ms_swaplanes_remake(ms_swapplan *plan, uint32_t tensor, uint64_t ns);
/* The tensors in these places of by_back are others now, or needed earlier. */
void ms_swaplanes_reorder(ms_swapplan *plan, uint32_t first, uint32_t end);

#endif
