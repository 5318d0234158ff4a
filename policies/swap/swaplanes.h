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

#include "policies/swap/swapplan.h"

typedef struct ms_swaplanes {
    /* Per tensor that moves: the calls between which it has to be away. */
    uint32_t *first_call, *last_call;
    /* Per call: the next one that is too high, and the one before. */
    uint32_t *high_next, *high_before;
    uint32_t *readers;    /* per tensor: of a pick */
    uint64_t *shift_ns;   /* per call: what is waited or recomputed before it */
    uint64_t *out_ns;     /* per position in by_out: the lane is free, */
    uint64_t *out_by_ns;  /* and must be, for all from there on to be in time */
    uint64_t *in_ns;      /* per position in by_back: the copies from there on
                             begin, */
    uint64_t *in_from_ns; /* and those before it can have ended */
} ms_swaplanes;

typedef struct ms_swaplanes_fit {
    int64_t free_ns; /* swapped out until it is swapped in */
    uint64_t late_out_ns, late_in_ns;
} ms_swaplanes_fit;

ms_err ms_swaplanes_open(ms_swapplan *plan);
/* Before each pick: the lanes as they are filled. */
void ms_swaplanes_look(ms_swapplan *plan);
/* As they would be with this tensor, which is idle in a call that is too
 * high. */
ms_swaplanes_fit ms_swaplanes_try(const ms_swapplan *plan, uint32_t tensor);
/* It leaves; what is late of it shifts what comes. */
void ms_swaplanes_move(ms_swapplan *plan, uint32_t tensor);
/* It is made again in so many nanoseconds. */
void ms_swaplanes_remake(ms_swapplan *plan, uint32_t tensor, uint64_t ns);

#endif
