/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_RANKHEAP_H
#define MS_SIM_RANKHEAP_H

/* Private to sim/replay: which of many ranks comes next.  Each rank has one
 * key, the instant of its next event; the heap names the rank with the earliest
 * one (of equal ones the lowest rank), so that an event costs the logarithm of
 * the number of ranks.
 *
 * It is a tournament: a tree whose leaves are the ranks and whose nodes name
 * the earlier of two.  A rank whose key changes plays again on its way up,
 * against one opponent a level; nothing else moves.
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
    uint32_t n_leaves; /* a power of two; ranks beyond the last never come */
    ms_rankkey *key;   /* per leaf */
    uint32_t *winner;  /* per node: a rank.  Node 1 is the root, those below
                          node i are 2i and 2i + 1, leaf r is n_leaves + r */
} ms_rankheap;

/* n ranks, at least one, none of which has an event. */
ms_err ms_rankheap_open(ms_rankheap *heap, uint32_t n, ms_arena *arena,
                        ms_fault *fault);
void ms_rankheap_set(ms_rankheap *heap, uint32_t rank, ms_rankkey key);
/* When any other rank than this one comes next. */
uint64_t ms_rankheap_others_ns(const ms_rankheap *heap, uint32_t rank);

static inline uint32_t ms_rankheap_first(const ms_rankheap *heap)
{
    return heap->winner[1];
}

static inline uint64_t ms_rankheap_first_ns(const ms_rankheap *heap)
{
    return heap->key[heap->winner[1]].t_ns;
}

#endif
