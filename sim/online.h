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
 *         const uint32_t *here;
 *         return ms_eviction_list(view, &here) > 0 ? here[0] : MS_NONE;
 *     }
 *
 * To list them all for each victim takes time in the square of the step.  A
 * pass that keeps them in an order of its own looks at view->changed, and asks
 * ms_eviction_may_go of the one that it would name. */

#include "sim/base/base.h"
#include "sim/graph.h"

struct ms_books;
struct ms_books_at;

/* One rank, one micro-batch.  Times are of the compute stream alone, as if
 * nothing were waited for. */
typedef struct ms_online_view {
    const ms_graph *graph;
    uint64_t now_ns;                     /* of all that was issued so far */
    uint64_t level_bytes, missing_bytes; /* of the device; above the budget */
    const uint32_t *row;     /* per storage, beyond n_persistent: its row, or
                                MS_NONE */
    const uint64_t *used_ns; /* per storage: when an op last used it */
    const uint32_t *came;    /* per storage, of those that ops save for
                                backward: the how-manieth it came or came back;
                                0: it is not here */
    uint32_t reached;        /* forward ops before this one have run in this
                                micro-batch */
    /* Of which row, used_ns, came or ms_online_gone may be others than when a
     * victim was last asked for; at first, and in another micro-batch, all. */
    const uint32_t *changed;
    uint32_t n_changed;
    const struct ms_books *books; /* expand's */
    const struct ms_books_at *at;
} ms_online_view;

typedef struct ms_online {
    const char *name; /* in faults */
    uint64_t budget_bytes;
    uint64_t most_again_ns; /* a step that runs more than this again thrashes */
    size_t state_bytes;
    const void *setup; /* the pass's own */
    /* Which of those goes that may; MS_NONE: none, and the step cannot be
     * run. */
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

/* Is the storage saved and here, can it be made again, and is it neither in use
 * nor held by anything else? */
bool ms_eviction_may_go(const ms_online_view *view, uint32_t storage);
/* All of which that is true, in the order in which they came or came back;
 * returns how many.  The list is there until the victim is named. */
uint32_t ms_eviction_list(const ms_online_view *view, const uint32_t **here);

#endif
