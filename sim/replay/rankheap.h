/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_RANKHEAP_H
#define MS_SIM_RANKHEAP_H

/* Private to sim/replay: which of many ranks comes next.  Each rank has one
 * key, the instant of its next event; the heap names the rank with the earliest
 * one (of equal ones the lowest rank), so that an event costs the logarithm of
 * the number of ranks.
 *
 *     ms_rankheap_set(&heap, 3, (ms_rankkey){700, 0});
 *     rank = ms_rankheap_first(&heap);             the earliest one: perhaps 3
 *     ms_rankheap_set(&heap, rank, its next key);  MS_RANKHEAP_NEVER: none */

#include "sim/base/base.h"

/* turn orders what one rank does at one time. */
typedef struct ms_rankkey {
    uint64_t t_ns;
    uint32_t turn;
} ms_rankkey;

#define MS_RANKHEAP_NEVER UINT64_MAX

typedef struct ms_rankheap {
    uint32_t n;
    ms_rankkey *key; /* per rank */
    uint32_t *at;    /* per rank: its place in order */
    uint32_t *order; /* a binary heap of the ranks */
} ms_rankheap;

/* n ranks, at least one, none of which has an event. */
ms_err ms_rankheap_open(ms_rankheap *heap, uint32_t n, ms_arena *arena,
                        ms_fault *fault);
void ms_rankheap_set(ms_rankheap *heap, uint32_t rank, ms_rankkey key);

static inline uint32_t ms_rankheap_first(const ms_rankheap *heap)
{
    return heap->order[0];
}

static inline uint64_t ms_rankheap_first_ns(const ms_rankheap *heap)
{
    return heap->key[heap->order[0]].t_ns;
}

#endif
