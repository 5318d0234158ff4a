/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PAIRINGS_H
#define MS_PAIRINGS_H

/* What one side holds at its peak and the other lacks at its own: a difference
 * of multisets of allocations.
 *
 * Sides that speak alike (two recordings with stacks, two of memsim's) are
 * paired by category, name and bytes; the first number of a layer's name and
 * the numbers of lines do not count.  Others are paired by the phase in which
 * an allocation is made and its bytes, in units of 512 bytes as PyTorch's
 * allocator rounds them, then by bytes alone; of equals the oldest pair first.
 * From such pairs, of the whole step, recorded allocations get their category.
 *
 * A worked example.  A holds 4 4 8 at its peak, B 4 8 8 16: one pair of 4, one
 * of 8; A has a 4 that B lacks, B an 8 and a 16: 24 - 4 = 20 bytes more, the
 * difference of the peaks. */

#include "tools/differences/side.h"

/* Allocations that are not paired, of a category and a name. */
typedef struct ms_pairings_group {
    const char *name; /* any bytes */
    uint8_t category; /* MS_N_CATEGORIES: not known */
    uint8_t phase;    /* in which the first is made */
    uint32_t count[2];
    uint64_t bytes[2];
    uint64_t each[2]; /* 0: they differ in size */
    /* How many of them the other makes in its step as well, but does not hold
     * at its peak. */
    uint32_t made[2];
    int64_t gap; /* bytes of side 1 less those of side 0 */
} ms_pairings_group;

typedef struct ms_pairings {
    ms_pairings_group *groups; /* the largest difference first */
    uint32_t n;
    bool by_name;             /* else by phase and size */
    const char *const *names; /* of both, as they are compared */
    uint32_t n_names;
    const uint32_t *name_of[2]; /* by site, the last of what has none */
    uint32_t same_count;        /* pairs at the peaks */
    uint64_t same_bytes;        /* of side 0 */
    uint64_t rounding[2]; /* pairs of other sizes within 512 bytes: by how much
                             a side's are larger */
    /* Of the whole step: */
    uint32_t step_count[2], step_same;
} ms_pairings;

/* Both sides have lives and were measured.  Gives them their categories. */
ms_err ms_pairings_find(ms_side sides[2], ms_arena *arena, ms_pairings *pairs,
                        ms_fault *fault);

#endif
