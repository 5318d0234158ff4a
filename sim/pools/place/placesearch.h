/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PLACESEARCH_H
#define MS_PLACESEARCH_H

/* Private to placeexact.c and placesearch.c: one depth-first search for a plan
 * within a capacity.
 *
 * A plan can be pushed down until each buffer lies at 0 or on one that it
 * meets.  So the search knows of each buffer only how low it may lie at best,
 * takes one under which no other has room, and branches: it lies right there,
 * or it rests on one that is still to come and so lies at least on the lowest
 * end of those.  Which buffer is taken changes nothing but the time.
 *
 *     cap 4   a [0, 2) 2 bytes, b [0, 1) 2, c [1, 2) 1
 *     a at 0:     b and c at 2 or more: each fits there, a plan
 *     a above 0:  it rests on b or c: at 1 or more, but then on b: at 2
 *
 * Time is cut into sections, each of the buffers that live at one moment; those
 * whose buffers are all in another are left out.  A section turns the search
 * back where some of its buffers, and the lowest that one of these may lie at,
 * exceed the capacity together. */

#include "sim/pools/place/placement.h"

typedef struct ms_placesearch_item {
    uint32_t lower, upper; /* sections */
    uint32_t id;           /* the caller's */
    uint32_t twin;         /* the same again: it lies above; MS_NONE */
    uint64_t bytes, align;
    uint64_t crowd; /* the most bytes of a section that it is in */
} ms_placesearch_item;

/* Where the next buffer is taken from: where it may lie lowest of all, or the
 * lowest of the section that failed most, or that failed most for its slack. */
typedef enum ms_placesearch_rule {
    MS_PLACESEARCH_LOWEST,
    MS_PLACESEARCH_FAILED,
    MS_PLACESEARCH_TIGHT
} ms_placesearch_rule;

typedef struct ms_placesearch_change {
    uint64_t old;
    uint32_t of, kind;
} ms_placesearch_change;

typedef struct ms_placesearch {
    /* By their first sections; those that begin in section t are [first[t],
     * first[t + 1]).  Those that live in t: in_section[section_at[t]] on;
     * that meet item i: meets[meets_at[i]] on, in the order of the items. */
    ms_placesearch_item *items;
    uint32_t *first, *section_at, *in_section, *meets_at, *meets;
    uint32_t n, n_sections;
    uint64_t capacity, n_steps, limit; /* limit: of n_steps */
    ms_placesearch_rule rule;
    uint64_t *keys;           /* of items: of two as low, the larger key */
    uint64_t *failures;       /* of sections, from 1 on; the search counts */
    uint64_t *lows;           /* of items: where it lies, or may lie at best */
    uint64_t *totals, *least; /* of sections: bytes to come, the lowest low */
    uint32_t *n_left;         /* of sections: items to come */
    bool *placed, *dirty;
    uint32_t *queue, n_queue; /* dirty sections */
    uint64_t *column;         /* room for one section's items, twice */
    uint64_t *vain;           /* hashes of states that hold no plan */
    ms_placesearch_change *trail;
    uint32_t n_trail, trail_capacity;
    uint32_t *parts, n_parts, parts_capacity; /* pairs of sections */
    const ms_placeexact_limits *limits;
    ms_arena *arena;
    bool stopped; /* by the limit, or by limits->stop */
    bool failed;  /* out of memory */
} ms_placesearch;

/* placeexact.c: arena is set; takes and sets items. */
ms_err ms_placeexact_items(ms_placesearch *s,
                           const ms_placement_buffer *buffers, uint32_t n,
                           uint32_t *n_sections, ms_fault *fault);
/* items, capacity, limits and arena are set: takes the rest. */
ms_err ms_placesearch_begin(ms_placesearch *s, uint32_t n, uint32_t n_sections,
                            ms_fault *fault);
/* From nothing placed.  True: the plan is in lows.  False: there is none, or
 * the search was stopped, or it failed. */
bool ms_placesearch_run(ms_placesearch *s);

#endif
