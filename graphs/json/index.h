/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_INDEX_H
#define MS_INDEX_H

/* From names to rows: an open-addressing table.  The names stay the
 * caller's and must outlive it.  Iteration order is never visible. */

#include "sim/base/base.h"

typedef struct ms_index {
    ms_arena *arena;
    uint32_t n, capacity; /* capacity: 0 or a power of two */
    struct ms_index_slot {
        const char *name; /* NULL: free */
        uint32_t hash, row;
    } * slots;
} ms_index;

/* Makes room for n names. */
ms_err ms_index_make(ms_index *index, uint32_t n, ms_arena *arena,
                     ms_fault *fault);
/* MS_NONE when there is no such name. */
uint32_t ms_index_find(const ms_index *index, const char *name);
/* Adds a name unless it is there already; returns its row: the given one, or
 * that of the earlier.  At most the n names of make. */
uint32_t ms_index_add(ms_index *index, const char *name, uint32_t row);

#endif
