/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_COPYQUEUE_H
#define MS_POLICIES_COPYQUEUE_H

/* Copies that run one after the other, in an order of places that each may hold
 * one.  What a queue of copies does to the time at which the first begins, and
 * to the time by which the last has to end, is a sum and two bounds, and of two
 * queues in a row it is that, too: so a tree of the places tells in O(log
 * places) what is before and behind any of them.
 *
 *     place        0              1      2
 *     copy of      4              -      4
 *     not before   0              -      2       place 1: free from 4 on,
 *     ends by      10             -      12      and to be free by 8 */

#include "sim/base/base.h"

/* Later than anything. */
#define MS_COPYQUEUE_NEVER (INT64_MAX / 4)

typedef struct ms_copyqueue_copy {
    int64_t busy_ns, from_ns, by_ns; /* it takes; begins; has to end */
    uint32_t from_call, by_call;     /* with which its bounds shift */
} ms_copyqueue_copy;

/* Of the copies below a node: what begins at x ends at most(x + busy, from),
 * what is to end by y begins at least(y - busy, by). */
typedef struct ms_copyqueue_node {
    int64_t busy_ns, from_ns, by_ns;
    int64_t more_from_ns, more_by_ns; /* to add to both halves */
    uint32_t first_from, last_from;   /* calls; none: first > last */
    uint32_t first_by, last_by;
} ms_copyqueue_node;

typedef struct ms_copyqueue {
    uint32_t leaves; /* a power of two */
    ms_copyqueue_node *nodes;
} ms_copyqueue;

/* What is left between the copies before a place and those behind it. */
typedef struct ms_copyqueue_gap {
    int64_t from_ns, by_ns;
} ms_copyqueue_gap;

/* A copy, and the call with which the bound shifts; MS_NONE: it is none. */
typedef struct ms_copyqueue_source {
    uint32_t place, call;
} ms_copyqueue_source;

ms_err ms_copyqueue_open(ms_copyqueue *queue, uint32_t n_places,
                         ms_arena *arena, ms_fault *fault);
void ms_copyqueue_clear(ms_copyqueue *queue);
/* NULL: no copy. */
void ms_copyqueue_set(ms_copyqueue *queue, uint32_t place,
                      const ms_copyqueue_copy *copy);
/* Every bound that goes with this call or a later one comes so much later. */
void ms_copyqueue_shift(ms_copyqueue *queue, uint32_t call, int64_t ns);
/* Before and behind a place, and the copies whose bounds that comes from. */
ms_copyqueue_gap ms_copyqueue_trace(const ms_copyqueue *queue, uint32_t place,
                                    ms_copyqueue_source *from,
                                    ms_copyqueue_source *by);

#endif
