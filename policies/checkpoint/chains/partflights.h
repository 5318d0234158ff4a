/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_PARTFLIGHTS_H
#define MS_POLICIES_PARTFLIGHTS_H

/* Private to policies/checkpoint: whose parts share a memory, and how many sets
 * of each there are at a time, as chains that share it (policies/solve/flights/
 * flights.h).  A group is a rank, or ranks that run copies of the same stages
 * (DualPipe): their parts are planned together.
 *
 *     1F1B on two ranks: part 0 in state (2), part 1 in state (1)
 *     interleaved, two chunks: rank 0 has parts 0 and 2, in states as (4, 1),
 *     (3, 2) and (2, 3)
 *
 * Between the halves of a backward a set is all that may be saved, whatever the
 * plan: what was run again is there, too. */

#include "policies/checkpoint/chains/chainparts.h"
#include "policies/solve/flights/flights.h"

typedef struct ms_partflights_group {
    ms_flights flights; /* a chain per part, in this order; */
    ms_chain *chains;   /* the same */
    uint32_t *part;
    bool alone; /* one chain, one set: what its backwards leave counts */
} ms_partflights_group;

typedef struct ms_partflights {
    uint32_t n;         /* groups */
    uint32_t *group_of; /* per rank of the schedule */
    ms_partflights_group *groups;
} ms_partflights;

/* tails: replays stop early. */
ms_err ms_partflights_find(const ms_policy_context *context,
                           const ms_chainparts *parts, bool tails,
                           ms_partflights *inflight, ms_fault *fault);

#endif
