/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_ORDERS_H
#define MS_ORDERS_H

/* The published orders of pipelines: which turn a rank takes when.  All are
 * rules of (rank, ranks, chunks, micro-batches); zb-1p and zb-2p alone look at
 * times and bytes.
 *
 * Of p ranks with v chunks each, stage s is rank s mod p's (a loop) or, of
 * zb-v, v-half, v-min and dualpipev, the ranks go up and down again (a V: rank
 * r has stages r and 2p - 1 - r).  Of dualpipe each stage is there twice: rank
 * r has stage r for the first half of the micro-batches, and p - 1 - r for the
 * second.
 *
 *     ms_orders_write(MS_ORDER_1F1B, &size, schedule, fault)
 *     2 ranks, 3 micro-batches:  0F0 0F1 0B0 0F2 0B1 0B2
 *                                1F0 1B0 1F1 1B1 1F2 1B2 */

#include "sim/schedule/schedule.h"

typedef enum ms_order {
    MS_ORDER_1F1B,        /* Narayanan et al. 2019 (PipeDream-Flush) */
    MS_ORDER_GPIPE,       /* Huang et al. 2019; backward first in, first out, as
                             in Megatron-LM and PyTorch */
    MS_ORDER_INTERLEAVED, /* Narayanan et al. 2021, as Megatron-LM's
                             schedules.py has it */
    MS_ORDER_LOOPED_BFS,  /* Lamy-Poirier 2023, as PyTorch has it */
    MS_ORDER_ZB_H1,       /* Qi et al. 2024; with several chunks PyTorch's
                             ScheduleInterleavedZeroBubble */
    MS_ORDER_ZB_H2,       /* Qi et al. 2024 */
    MS_ORDER_ZB_V,   /* Qi et al. 2024, as PyTorch's ScheduleZBVZeroBubble */
    MS_ORDER_V_HALF, /* squeezed.h */
    MS_ORDER_V_MIN,
    MS_ORDER_DUALPIPEV, /* dualpipe.h */
    MS_ORDER_DUALPIPE,
    MS_ORDER_ZB_1P, /* greedy.h */
    MS_ORDER_ZB_2P,
    MS_N_ORDERS
} ms_order;

typedef struct ms_orders_size {
    uint32_t ranks, chunks, micro_batches;
    uint32_t group; /* interleaved: micro-batches that go through a chunk
                       before the next chunk's turn; 0: as many as ranks */
} ms_orders_size;

/* The chunks per rank where so many are given; 0: none are. */
uint32_t ms_orders_chunks(ms_order order, uint32_t given);

/* Does it run halves of backward apart? */
bool ms_orders_splits(ms_order order);
/* Does it look at times and bytes (costs)? */
bool ms_orders_plans(ms_order order);
/* Of which rank is stage s? */
uint16_t ms_orders_rank(ms_order order, const ms_orders_size *size, uint32_t s);
/* Fills turn_at and turns of a schedule of these ranks and micro-batches, whose
 * arrays have room for room(size) turns, and rank_of where stages have copies.
 * MS_EUSAGE: numbers that the order does not allow. */
uint64_t ms_orders_room(const ms_orders_size *size);
ms_err ms_orders_write(ms_order order, const ms_orders_size *size,
                       ms_arena *arena, ms_schedule *schedule, ms_fault *fault);

/* Of an interleaved order as written: one more forward comes first on each
 * rank, and each of the others is one turn with the backward behind it, of a
 * micro-batch before it. */
void ms_orders_pair(ms_schedule *schedule);

/* What orders that look at times and bytes are planned with.  Of a stage and
 * one micro-batch: how long its forward and the halves of backward take; what
 * of its activations is there behind forward, and of that, at most, what waits
 * from one half to the other. */
typedef struct ms_orders_costs {
    uint64_t message_ns;
    struct ms_orders_stage {
        uint64_t forward_ns, input_ns, weight_ns;
        uint64_t bytes, wait_bytes;
    } * stages; /* NULL: not known */
} ms_orders_costs;

/* The same as write, of an order that looks at costs.  write knows none. */
ms_err ms_orders_plan(ms_order order, const ms_orders_size *size,
                      const ms_orders_costs *costs, ms_arena *arena,
                      ms_schedule *schedule, ms_fault *fault);

#endif
