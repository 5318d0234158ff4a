/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_ONLINE_H
#define MS_SIM_ONLINE_H

/* The last of the passes that make a program works while its rows are taken: it
 * watches the level of the device in host order and, where an op's results
 * would not fit in the budget, names saved tensors that go.  Whoever reads one
 * of them later finds it gone, and bind makes it again, within the budget like
 * any other op.
 *
 * The books belong to expand; a pass sees a view and answers with a storage.
 * It is a value that many threads may read: what it remembers of a step is in
 * a state of its own, zero as the step begins.
 *
 * A worked example, a budget of 3, three ops in a row that each save one
 * tensor of 1, and their backwards, which read them in the opposite order and
 * take 1 for a gradient:
 *
 *     op          takes   level   goes       who is here
 *     a           a       1                  a
 *     b           b       2                  a b
 *     c           c       3                  a b c
 *     c backward  grad    4 > 3   a          b c, then b
 *     b backward  grad    3                  b, then nothing
 *     a again     a       2                  a
 *     a backward  grad    3                  a, then nothing
 *
 *     static uint32_t oldest(const ms_online *online, void *state,
 *                            const ms_online_view *view)
 *     {
 *         return view->n_here > 0 ? view->here[0] : MS_NONE;
 *     } */

#include "sim/base/base.h"
#include "sim/graph.h"

/* One rank, one micro-batch.  Times are of the compute stream alone, as if
 * nothing were waited for. */
typedef struct ms_online_view {
    const ms_graph *graph;
    uint64_t now_ns;                     /* of all that was issued so far */
    uint64_t level_bytes, missing_bytes; /* of the device; above the budget */
    const uint32_t *here; /* n_here: what may go, in the order in which it came
                             or came back */
    uint32_t n_here;
    const uint32_t *row;     /* per storage, beyond n_persistent: its row, or
                                MS_NONE */
    const uint64_t *used_ns; /* per storage: when an op last used it */
    uint32_t reached;        /* forward ops before this one have run in this
                                micro-batch */
} ms_online_view;

typedef struct ms_online {
    const char *name; /* in faults */
    uint64_t budget_bytes;
    uint64_t most_again_ns; /* a step that runs more than this again thrashes */
    size_t state_bytes;
    const void *setup; /* the pass's own */
    /* Which of `here` goes; MS_NONE: none, and the step cannot be run. */
    uint32_t (*victim)(const struct ms_online *online, void *state,
                       const ms_online_view *view);
} ms_online;

/* Was the storage made in this micro-batch, by forward, and is it gone? */
static inline bool ms_online_gone(const ms_online_view *view, uint32_t storage)
{
    const ms_graph *graph = view->graph;
    return storage >= graph->n_persistent && view->row[storage] == MS_NONE &&
           graph->storage_maker[storage] < view->reached;
}

#endif
