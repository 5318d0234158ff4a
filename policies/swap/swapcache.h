/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_SWAPCACHE_H
#define MS_POLICIES_SWAPCACHE_H

/* Private to the swap files: a tensor cache (SuperNeurons, Wang et al., PPoPP
 * 2018).  Device memory is the cache, host memory what
 * is behind it; nothing is copied as long as the budget holds everything.
 * Before a call that would exceed it the tensors that were used longest ago
 * leave, those that the call uses are locked; the compute stream waits for the
 * copies, whose memory it is about to need.  They begin when the host has
 * issued them, not when that stream comes to the call.
 *
 *     budget: two tensors      forward 0   1    2       backward 2  1    0
 *     unit i makes c_i, reads            [out          prefetch    c_0
 *     c_(i - 1) in both                   c_0]         of c_0
 *
 * What is away is fetched before the call that uses it, or ahead: when the
 * backward of a fetching unit (a layer that makes such tensors) begins, for
 * all until the end of the next one's, as far as there is room all the time. */

#include "policies/swap/swap.h"

typedef struct ms_swapcache {
    const ms_program *program;     /* to move tensors in */
    const uint8_t *cached;         /* per storage: may leave */
    const uint8_t *fetches;        /* per unit */
    const ms_policy_value *budget; /* ms_profile_budget */
    const char *name;              /* of the way, for errors */
} ms_swapcache;

/* Writes the cache's program with its copies to swap->program.  Faults:
 * MS_EINFEASIBLE, with the least budget that does. */
ms_err ms_swapcache_write(ms_swap *swap, const ms_swapcache *cache);

#endif
