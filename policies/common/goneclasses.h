/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_GONECLASSES_H
#define MS_POLICIES_GONECLASSES_H

/* Classes of what is gone (h_DTR_eq, Kirisame et al., ICLR 2021, appendix D.1):
 * items that went next to each other, with a sum of times.  What comes back
 * takes its own time out of its class, and leaves it whole.
 *
 *     join 3 (10 ns)    {3} 10
 *     join 4 (20 ns)    {3} 10, {4} 20
 *     merge 3, 4        {3 4} 30
 *     leave 3 (10 ns)   {4} 20
 *
 * Merging names the members of the smaller class anew: O(log n) a member. */

#include "sim/base/base.h"

/* Of zero memory; items and classes are counted from 1 in the columns. */
typedef struct ms_goneclasses {
    uint32_t n, n_named, n_free;
    int64_t *sum_ns;        /* per class */
    uint32_t *class_of;     /* per item; 0: it is in none */
    uint32_t *next, *back;  /* per item: of its class, 0 at the ends */
    uint32_t *first, *size; /* per class */
    uint32_t *free;         /* classes that are empty */
} ms_goneclasses;

/* Bytes of memory for n items, a multiple of 8. */
size_t ms_goneclasses_size(uint32_t n);
void ms_goneclasses_open(ms_goneclasses *classes, void *memory, uint32_t n);

static inline bool ms_goneclasses_has(const ms_goneclasses *classes,
                                      uint32_t item)
{
    return classes->class_of[item + 1] != 0;
}
/* The item, in no class, makes one of its own. */
void ms_goneclasses_join(ms_goneclasses *classes, uint32_t item, uint64_t ns);
/* Both are in classes; it may be the same one. */
void ms_goneclasses_merge(ms_goneclasses *classes, uint32_t a, uint32_t b);
void ms_goneclasses_leave(ms_goneclasses *classes, uint32_t item, uint64_t ns);

#endif
