/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_UNSHARDHOOKS_H
#define MS_POLICIES_UNSHARDHOOKS_H

/* Private to unshard.c: what the hooks of one module do, be it the model or a
 * stage of it (unshard.h has the events). */

#include "policies/share/unshardunits.h"

typedef struct ms_unshardhooks {
    const ms_graph *graph;
    const ms_unshard *options;
    ms_arena *arena;
    ms_fault *fault;
    ms_program *program; /* the new one */
    const ms_call *at;   /* the call in whose name calls are added */
    const ms_call *end;  /* of the calls */
    ms_unshardunits units;
    ms_unshard_unit *unit;  /* of units, as the next three */
    uint32_t n_units, root; /* root + 1, root + 2: before, behind the blocks */
    uint32_t *order, n_order; /* units but the root, as forward runs them */
    uint32_t now, back;       /* the unit under way in forward, in backward */
    uint32_t held;       /* whose all-gather's output forward still holds */
    uint32_t scattering; /* whose reduce-scatter's input backward still holds */
    uint32_t outer;      /* the same of an all-reduce */
    bool in_forward, in_backward;
    bool again; /* backward runs unit `now` again */
} ms_unshardhooks;

/* Of the range and the program that units says; end: of the calls that the
 * others are of. */
ms_err ms_unshardhooks_open(const ms_unshardunits *units, const ms_call *end,
                            ms_unshardhooks *hooks);
/* The calls in front of one of the module's, or of the step's. */
ms_err ms_unshardhooks_before(ms_unshardhooks *hooks, const ms_call *call);
/* Those behind it; last: it ends the module's last backward. */
ms_err ms_unshardhooks_after(ms_unshardhooks *hooks, const ms_call *call,
                             bool last);

#endif
