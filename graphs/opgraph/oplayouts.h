/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_OPLAYOUTS_H
#define MS_OPLAYOUTS_H

/* Private to opgraph/: the layouts of an op graph's tensors, each once.  Of a
 * million tensors few are shaped as no other is. */

#include "graphs/opgraph/opgraph.h"

typedef struct ms_oplayouts {
    ms_arena *keep, *scratch; /* of the layouts; of the table */
    uint32_t n, capacity;     /* capacity: 0 or a power of two */
    struct ms_oplayouts_slot {
        const ms_oplayout *layout; /* NULL: free */
    } * slots;
} ms_oplayouts;

/* The one that is equal to layout, whose numbers beyond its dimensions are 0;
 * NULL: no memory. */
const ms_oplayout *ms_oplayouts_find(ms_oplayouts *all,
                                     const ms_oplayout *layout);

#endif
