/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_OPCOPIES_H
#define MS_OPCOPIES_H

/* Private to opgraph/: of what is equal in an op graph one copy is kept: the
 * layouts of tensors, the arguments of nodes.  Of a million few are as no
 * other is. */

#include "sim/base/base.h"

typedef struct ms_opcopies {
    ms_arena *keep, *scratch; /* of the copies; of the table */
    uint32_t n, capacity;     /* capacity: 0 or a power of two */
    struct ms_opcopies_slot {
        const void *copy; /* NULL: free */
        uint32_t hash, bytes;
    } * slots;
} ms_opcopies;

/* The copy of so many bytes, words of 8, which has no padding that is not 0;
 * NULL: no memory. */
const void *ms_opcopies_of(ms_opcopies *all, const void *items, size_t bytes);

#endif
