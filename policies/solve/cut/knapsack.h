/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_KNAPSACK_H
#define MS_POLICIES_KNAPSACK_H

/* Which of n tensors to save in so many bytes, so that what is made again takes
 * least (torch 2.5, functorch/_activation_checkpointing/knapsack.py).
 *
 *     weight 5 4 3, value 6 5 4, room 7: the last two, 9 */

#include "policies/common/policy.h"

typedef struct ms_knapsack {
    uint32_t n;
    const uint64_t *weight, *value;
    uint64_t room;
} ms_knapsack;

/* The best choice: exact where the room is at most MS_KNAPSACK_UNITS, above
 * that in so many units, to which weights are rounded up.  At most that of
 * MS_KNAPSACK_BYTES of tables, else fewer. */
#define MS_KNAPSACK_UNITS 10000u
#define MS_KNAPSACK_BYTES (UINT64_C(1) << 28)
ms_err ms_knapsack_best(const ms_knapsack *sack, ms_arena *arena,
                        uint8_t *is_saved, ms_fault *fault);
/* By value per weight, the most first, each that still fits. */
ms_err ms_knapsack_greedy(const ms_knapsack *sack, ms_arena *arena,
                          uint8_t *is_saved, ms_fault *fault);

#endif
