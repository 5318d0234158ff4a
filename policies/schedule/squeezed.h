/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SQUEEZED_H
#define MS_SQUEEZED_H

/* Private to policies/schedule: V-half and V-min (Qi et al., Pipeline
 * Parallelism with Controllable Memory, NeurIPS 2024, arXiv 2405.15362), as
 * sail-sg/zero-bubble-pipeline-parallelism@39f2c186 finds them (zerobubble/
 * scheduler/zbv_greedy.py).
 *
 * A V whose rank r of p has stages r and 2p - 1 - r.  Each micro-batch has the
 * same slots of one unit of time, six later than the one before it: forward of
 * either chunk, then the inputs' half back.  Rank r of p, V-min (d: 2 where 3
 * divides p, so that no two slots fall together):
 *
 *     F0 r    F1 2p-1-r    I1 2p+d+r    I0 4p+d-1-r
 *
 * Weights' halves take the first free slots.  Then turns move to earlier free
 * slots, as far as what they wait for allows and no rank holds more than the
 * highest did; once more so, without those halves, behind the last forward of
 * rank 0; and what is left is the order of each rank.  Costs play no part. */

#include "policies/schedule/orders.h"

ms_err ms_squeezed_write(ms_order order, const ms_orders_size *size,
                         ms_arena *arena, ms_schedule *schedule,
                         ms_fault *fault);

#endif
