/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_LEAST_H
#define MS_POLICIES_LEAST_H

/* Which of n slots has the least key, while keys come, change and go: a
 * tournament, O(log n) per change. */

#include "sim/base/base.h"

typedef struct ms_least {
    uint32_t leaves; /* a power of two, at least the number of slots */
    uint32_t *key;   /* per node the least below it; MS_NONE: none */
} ms_least;

/* No slot has a key yet.  Faults: MS_ENOMEM. */
ms_err ms_least_open(ms_least *least, uint32_t n, ms_arena *arena,
                     ms_fault *fault);
/* MS_NONE takes the slot's key away. */
void ms_least_set(ms_least *least, uint32_t slot, uint32_t key);
/* The first of the slots whose key is the least; MS_NONE: none has a key. */
uint32_t ms_least_slot(const ms_least *least);

#endif
