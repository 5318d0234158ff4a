/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_ALIKE_H
#define MS_POLICIES_ALIKE_H

/* Items by kind, and of each kind which is first.  What a rule makes of an item
 * may change with time for all of them at once, but in one kind the order stays
 * as it is: to find the best of all is to look at the first of each kind, and a
 * model that repeats its layers has few kinds.
 *
 *     item   kind   order_ns   came
 *     0      a      10         1
 *     1      b      10         2        first of a: 2, which came later
 *     2      a      10         3        first of b: 1
 *     3      b      20         4
 *
 * To set and to remove an item takes O(log items), amortized, and a look at
 * the kinds that hash to the same chain.  Memory is one block of
 * ms_alike_size(n) bytes, aligned to 8, for items from 0 to before n. */

#include "sim/base/base.h"

typedef struct ms_alike_kind {
    uint64_t a, b;
    uint32_t first; /* item */
    uint32_t chain, at;
} ms_alike_kind;

typedef struct ms_alike_item {
    uint64_t order_ns;            /* the least is first of its kind, */
    uint32_t came;                /* of several the one that came last */
    uint32_t kind;                /* MS_NONE: it is not there */
    uint32_t child, next, before; /* a pairing heap */
} ms_alike_item;

typedef struct ms_alike {
    ms_alike_item *items;
    ms_alike_kind *kinds;       /* room for as many as there are items */
    uint32_t *chains, n_chains; /* a power of two */
    uint32_t *in_use, n_kinds; /* kinds that have items; behind them the free */
} ms_alike;

size_t ms_alike_size(uint32_t n);
void ms_alike_open(ms_alike *alike, void *memory, uint32_t n);
/* The item is of the kind (a, b) from now on, whatever it was. */
void ms_alike_set(ms_alike *alike, uint32_t item, uint64_t a, uint64_t b,
                  uint64_t order_ns, uint32_t came);
/* Nothing happens where it is not there. */
void ms_alike_remove(ms_alike *alike, uint32_t item);

#endif
