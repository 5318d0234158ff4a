/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_LEVELS_H
#define MS_POLICIES_LEVELS_H

/* The level of memory of each call of a program, while a rule sends tensors
 * away and brings them back: a tree of the calls, in which a stretch of any
 * length is changed or asked in O(log calls). */

#include "sim/base/base.h"

/* Levels fall from call to call by what is in a node; all in bytes. */
typedef struct ms_levels_node {
    int64_t sum;  /* of all falls below the node */
    int64_t most; /* the highest sum from some call of it to its last */
} ms_levels_node;

typedef struct ms_levels {
    uint32_t leaves; /* a power of two, at least the number of calls */
    ms_levels_node *nodes;
} ms_levels;

/* From the levels of n calls, in bytes.  Faults: MS_ENOMEM. */
ms_err ms_levels_open(ms_levels *levels, const uint64_t *level_bytes,
                      uint32_t n, ms_arena *arena, ms_fault *fault);
/* Adds to all calls before end. */
void ms_levels_add(ms_levels *levels, uint32_t end, int64_t bytes);
/* The highest level of the calls from first to before end, one at least. */
int64_t ms_levels_most(const ms_levels *levels, uint32_t first, uint32_t end);

#endif
