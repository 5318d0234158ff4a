/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_EVICTSTATE_H
#define MS_POLICIES_EVICTSTATE_H

/* Private to policies/solve: what an evictor knows of the storages. */

#include "policies/common/goneclasses.h"
#include "policies/solve/evictor.h"
#include "sim/graph.h"

enum { MS_EVICT_DOWN, MS_EVICT_UP, MS_EVICT_WAYS }; /* to readers, to makers */

/* Of each storage that is here, what is gone and can be reached through what is
 * gone (inside), and what is here behind that (edge): a bit per storage. */
typedef struct ms_evictregions {
    uint32_t n_words; /* of a row */
    uint64_t *inside[MS_EVICT_WAYS], *edge[MS_EVICT_WAYS];
    uint64_t *sum_ns[MS_EVICT_WAYS];  /* per storage: of inside */
    uint64_t *touched[MS_EVICT_WAYS]; /* a row: whose are to be found anew */
    uint32_t *stack;
} ms_evictregions;

typedef struct ms_evictclasses {
    ms_goneclasses all;
    uint32_t *seen, tick, *near; /* of a search for neighbours */
} ms_evictclasses;

typedef struct ms_evictstate {
    const ms_graph *graph;
    const ms_evictor_setup *setup;
    ms_arena *arena;
    ms_fault *fault;
    uint32_t n_ops; /* that have come so far */
    /* Per storage: ops that read it, and ops that make it or a view of it;
     * CSR */
    uint32_t *reader_at, *reader, *maker_at, *maker;
    uint8_t *here, *pinned;
    uint32_t *locks;
    uint64_t *own_ns, *used_ns;
    uint64_t now_ns;
    uint32_t n_pool, *pool;
    ms_evictregions regions;
    ms_evictclasses classes;
    uint64_t random;
} ms_evictstate;

static inline bool ms_evictstate_gone(const ms_evictstate *state, uint32_t s)
{
    return !state->here[s] && state->graph->storage_maker[s] < state->n_ops;
}

/* evictregions.c */
ms_err ms_evictregions_open(ms_evictstate *state);
void ms_evictregions_went(ms_evictstate *state, uint32_t storage);
/* What one op has brought back. */
void ms_evictregions_came(ms_evictstate *state, const uint32_t *storages,
                          uint32_t n);
/* evictclasses.c */
ms_err ms_evictclasses_open(ms_evictstate *state);
void ms_evictclasses_went(ms_evictstate *state, uint32_t storage);
void ms_evictclasses_came(ms_evictstate *state, uint32_t storage);
/* The time of the classes that the storage touches; it may be less than none,
 * because what comes back takes its own time out, were it in or not. */
int64_t ms_evictclasses_around(ms_evictstate *state, uint32_t storage);
/* evictcosts.c: the place in the pool of what goes next. */
uint32_t ms_evictcosts_choose(ms_evictstate *state);

#endif
