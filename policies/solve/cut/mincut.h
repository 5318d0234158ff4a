/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_MINCUT_H
#define MS_POLICIES_MINCUT_H

/* Which tensors of forward to save so that backward has all that it needs, for
 * the least weight: a minimum cut (torch 2.5, functorch/partitioners.py,
 * solve_min_cut).  Each tensor is an edge of its weight; from it edges that
 * cannot be cut go to the tensors that are made of it; the source is behind
 * those that may not be made again, and those that backward needs are before
 * the sink.
 *
 *     x 4 (banned) -> a 8 -> b 8 (needed)      saved: x
 *                       `--> c 1 (needed)
 *
 * Of cuts of one weight that next to the source is taken. */

#include "policies/common/policy.h"

typedef struct ms_mincut_net {
    uint32_t n;
    const uint32_t *dep_at, *dep; /* CSR: what each is made of, earlier ones */
    const uint64_t *weight;
    const uint8_t *banned, *needed;
} ms_mincut_net;

/* is_saved: a flag each; *weight: of all of them.  Dinic's algorithm. */
ms_err ms_mincut_find(const ms_mincut_net *net, ms_arena *arena,
                      uint8_t *is_saved, uint64_t *weight, ms_fault *fault);

#endif
