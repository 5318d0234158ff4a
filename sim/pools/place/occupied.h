/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_OCCUPIED_H
#define MS_OCCUPIED_H

/* Private to this folder: which addresses are taken at some time of a life.
 *
 * A tree halves the times.  A life is cut into the nodes that lie wholly in it;
 * each of them remembers the span of addresses as taken throughout (`whole`),
 * each of them and all above it as taken somewhere (`some`).  What a life may
 * not use is then the union of `some` in its own nodes and of `whole` in those
 * above them.  Spans that touch are joined, so that a plan that is packed well
 * has few of them, however many buffers lie in it.
 *
 *     put [0, 2) at 0..10 and [1, 3) at 10..30
 *     life [0, 1): one gap from 10 on        life [1, 2): from 30 on
 *
 * To put and to look cost O(log times) spans each, and what these hold. */

#include "sim/pools/place/placement.h"

typedef struct ms_occupied_span {
    uint64_t from, to; /* addresses [from, to) */
} ms_occupied_span;

/* Ascending, none touches the next. */
typedef struct ms_occupied_spans {
    ms_occupied_span *at;
    uint32_t n, capacity;
} ms_occupied_spans;

typedef struct ms_occupied {
    ms_occupied_spans *whole, *some; /* of nodes, the first is the root's */
    uint32_t n_times;                /* a power of two */
    ms_arena *arena;
    /* While a life is looked at: the sets that matter, and where each is. */
    const ms_occupied_spans **sets;
    uint32_t *next, n_sets;
} ms_occupied;

ms_err ms_occupied_begin(ms_occupied *o, uint32_t n_times, ms_arena *arena,
                         ms_fault *fault);
ms_err ms_occupied_put(ms_occupied *o, ms_placement_life life,
                       ms_occupied_span span, ms_fault *fault);
/* Gaps of a life, from the lowest on: ms_occupied_look, then ms_occupied_gap
 * until its gap ends at UINT64_MAX. */
void ms_occupied_look(ms_occupied *o, ms_placement_life life);
/* The first gap that begins at `from` or above, which ascends. */
ms_occupied_span ms_occupied_gap(ms_occupied *o, uint64_t from);

#endif
