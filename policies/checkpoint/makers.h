/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_MAKERS_H
#define MS_POLICIES_MAKERS_H

/* Who is made from whom in a forward, and in what time.
 *
 *     x = embed(ids); h = gelu(x); h += x
 *
 * h is made from x, by two ops: its time is that of both. */

#include "sim/base/base.h"
#include "sim/nouns.h"

/* CSR: at has an entry more than there are storages. */
typedef struct ms_makers_edges {
    uint32_t *at, *to;
} ms_makers_edges;

/* Behind the last op of forward. */
uint32_t ms_makers_end(const ms_graph *graph);

/* Per storage that is not persistent: from which ones it is made, and which
 * ones from it; a pair as often as ops read it. */
ms_err ms_makers_find(const ms_graph *graph, ms_arena *arena,
                      ms_makers_edges *parents, ms_makers_edges *children,
                      ms_fault *fault);

/* Per storage: the time of the ops that make it and finish it in place. */
ms_err ms_makers_costs(const ms_graph *graph, ms_arena *arena,
                       uint64_t **cost_ns, ms_fault *fault);

#endif
