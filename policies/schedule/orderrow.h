/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_ORDERROW_H
#define MS_ORDERROW_H

/* Private to policies/schedule: a rank's row of an order under way.
 *
 *     ms_orderrow w = {.size = size, .order = order, .rank = r,
 *                      .schedule = schedule};
 *     ms_orderrow_put(&w, MS_TURN_FORWARD, 0, 3);      rank 2 of 4: 2F3
 *     ms_orderrow_next(&w, MS_TURN_FORWARD, 1);        of a V:      5F0 */

#include "policies/schedule/orders.h"

/* done: of each chunk, how many micro-batches have gone forward, back (whole,
 * or the inputs' half), and through the weights' half. */
typedef struct ms_orderrow {
    const ms_orders_size *size;
    ms_order order;
    uint32_t rank;
    ms_schedule *schedule;
    uint32_t done[2][MS_N_TURNS]; /* of a V's two chunks */
} ms_orderrow;

/* Do the ranks go up and down again? */
bool ms_orderrow_is_v(ms_order order);
void ms_orderrow_put(ms_orderrow *row, ms_turn_kind kind, uint32_t chunk,
                     uint32_t micro_batch);
/* The next turn of the kind of a chunk; where there are fewer micro-batches
 * than the order is written for, an empty cell. */
void ms_orderrow_next(ms_orderrow *row, ms_turn_kind kind, uint32_t chunk);

#endif
