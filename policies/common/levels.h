/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_LEVELS_H
#define MS_POLICIES_LEVELS_H

/* The level of memory of each call of a program, while a rule sends tensors
 * away and brings them back: a tree of the calls, in which a stretch of any
 * length is changed or asked in O(log calls). */

#include "sim/base/base.h"

/* Levels fall from call to call by what is in a node; all in bytes. */
typedef struct ms_levels_node {
    int64_t sum; /* of all falls below the node */
    /* The highest and the lowest sum from some call of it to its last; least:
     * of those that are not hidden. */
    int64_t most, least;
} ms_levels_node;

typedef struct ms_levels {
    uint32_t leaves; /* a power of two, at least the number of calls */
    ms_levels_node *nodes;
} ms_levels;

/* From the levels of n calls, in bytes.  Faults: MS_ENOMEM. */
ms_err ms_levels_open(ms_levels *levels, const uint64_t *level_bytes,
                      uint32_t n, ms_arena *arena, ms_fault *fault);
/* The same tree with other levels. */
void ms_levels_set(ms_levels *levels, const uint64_t *level_bytes, uint32_t n);
/* Adds to the calls from first to before end. */
void ms_levels_add(ms_levels *levels, uint32_t first, uint32_t end,
                   int64_t bytes);
/* The highest level of the calls from first to before end, one at least. */
int64_t ms_levels_most(const ms_levels *levels, uint32_t first, uint32_t end);
/* The first of the calls whose level is the highest. */
uint32_t ms_levels_highest(const ms_levels *levels, int64_t *bytes);
/* Of the calls from first to before end the first with more bytes; end: there
 * is none. */
uint32_t ms_levels_above(const ms_levels *levels, uint32_t first, uint32_t end,
                         int64_t bytes);
/* Of those that are not hidden, the first with no more than so many bytes. */
uint32_t ms_levels_below(const ms_levels *levels, uint32_t first, uint32_t end,
                         int64_t bytes);
/* ms_levels_below finds it no more. */
void ms_levels_hide(ms_levels *levels, uint32_t call);
bool ms_levels_is_hidden(const ms_levels *levels, uint32_t call);
/* The call behind the last of them; first: there is none. */
uint32_t ms_levels_behind(const ms_levels *levels, uint32_t first, uint32_t end,
                          int64_t bytes);

#endif
